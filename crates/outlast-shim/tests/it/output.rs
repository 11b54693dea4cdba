//! What agents print, in files.

use outlast_core::ErrorCode;
use outlast_core::journal::{files, sentinel};
use outlast_core::shim::{Fallback, FenceChoice, OutputLimits};
use rustix::fs::inotify;
use rustix::process::Signal;

use crate::bench::{Bench, fences, now_ms};

#[test]
fn bytes_are_kept_and_the_sentinel_is_exact() {
    for (script, expected, exit) in [
        ("true", &b""[..], 0),
        ("echo line", b"line\n", 0),
        ("printf open; exit 9", b"open", 9),
        (r"printf '\000\377\n\n'", b"\0\xff\n\n", 0),
        ("echo x; kill -TERM $$", b"x\n", 143),
    ] {
        let bench = Bench::new();
        let shim = bench.launch(script, FenceChoice::Auto);
        let (printed, record) = bench.ended(shim);
        assert_eq!((printed.as_slice(), record.exit, record.cause), (expected, exit, None), "{script}");
    }
}

#[test]
fn a_line_of_any_length_takes_little_memory() {
    let bench = Bench::new();
    let script = "head -c 200000000 /dev/zero; touch up; while ! [ -e go ]; do sleep 0.01; done";
    let shim = bench.launch(script, FenceChoice::Auto);
    bench.until_file("up");
    for pid in [shim.pid(), bench.keeper().pid] {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("status");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("peak");
        let peak: u64 = peak.trim().trim_end_matches(" kB").parse().expect("number");
        assert!(peak < 16 * 1024, "{peak} kB");
    }
    std::fs::write(bench.dir.path().join("go"), "").expect("go");
    shim.wait();
    assert_eq!(bench.exit().expect("exit").stdout_bytes, 200_000_000);
}

#[test]
fn leftovers_get_two_seconds() {
    for fence in fences() {
        let bench = Bench::new();
        let before = now_ms();
        // One of them is an orphan before the agent ends.
        let script =
            "((sleep 0.5; echo late) &); (trap '' TERM; sleep 1000; echo never) & sleep 0.1; echo early";
        let shim = bench.launch(script, fence);
        let (printed, record) = bench.ended(shim);
        let took = now_ms() - before;
        assert_eq!(
            (String::from_utf8_lossy(&printed).as_ref(), record.exit),
            ("early\nlate\n", 0),
            "{fence:?}"
        );
        assert!((1_900..6_000).contains(&took), "{fence:?}: {took} ms");
        assert!(bench.census().is_empty(), "{fence:?}");
    }
}

#[test]
fn nobody_waits_for_leftovers_that_leave() {
    for fence in fences() {
        let bench = Bench::new();
        let before = now_ms();
        bench.launch("sleep 0.1 & setsid sleep 0.1 & true", fence).wait();
        assert!(now_ms() - before < 1_500, "{fence:?}");
    }
}

#[test]
fn quotas_name_what_was_too_much() {
    for fence in fences() {
        for (script, stdout, limit) in [("yes", 5_000, "5000"), ("echo a; yes >&2", 2, "standard error")] {
            let bench = Bench::new();
            let mut request = bench.request(&format!("setsid sleep 1000 & {script}"), fence);
            request.limits = OutputLimits { stdout: 5_000, stderr: 1_000 };
            let (printed, record) = bench.ended(bench.start(&request));
            let cause = record.cause.expect("cause");
            assert_eq!(cause.code, ErrorCode::OutputLimit);
            assert!(cause.message.contains(limit), "{}", cause.message);
            assert_eq!((printed.len(), record.exit), (stdout, 137), "{fence:?}");
            assert!(std::fs::metadata(bench.file(files::STDERR)).expect("stderr").len() <= 1_000);
            assert!(bench.census().is_empty(), "{fence:?}");
        }
    }
}

#[test]
fn a_stopped_second_attempt_stops() {
    for fence in fences() {
        let bench = Bench::new();
        let mut request = bench.request("echo gone >&2; exit 1", fence);
        let command = bench.shell("echo second; touch up; while :; do sleep 1; done");
        request.fallback = Some(Fallback { markers: vec!["gone".into()], command });
        let shim = bench.start(&request);
        let keeper = bench.keeper();
        bench.until_file("up");
        assert!(
            outlast_shim::process::alive(keeper),
            "the fence that the latch names holds the second attempt"
        );
        shim.signal(Signal::TERM);
        let (printed, record) = bench.ended(shim);
        let expected = format!("{}\nsecond\n", sentinel::restart_note(&Bench::secret()));
        assert_eq!((String::from_utf8_lossy(&printed).into_owned(), record.exit), (expected, 143));
        assert!(bench.census().is_empty());
    }
}

#[test]
fn a_second_attempt_after_a_few_words_but_not_after_work() {
    let most = Fallback::MAX_PRINTED;
    let note = format!("{}\nsecond\n", sentinel::restart_note(&Bench::secret()));
    let full = "x".repeat(most as usize);
    for (script, expected, exit) in [
        ("echo lost".to_owned(), format!("lost\n{note}"), 0),
        ("printf lost".to_owned(), format!("lost\n{note}"), 0),
        (format!("head -c {most} /dev/zero | tr '\\0' x"), format!("{full}\n{note}"), 0),
        (format!("head -c {} /dev/zero | tr '\\0' x", most + 1), format!("{full}x"), 1),
    ] {
        let bench = Bench::new();
        let mut request = bench.request(&format!("{script}; echo gone >&2; exit 1"), FenceChoice::Auto);
        let command = bench.shell("echo second");
        request.fallback = Some(Fallback { markers: vec!["gone".into()], command });
        let (printed, record) = bench.ended(bench.start(&request));
        assert_eq!(String::from_utf8_lossy(&printed), expected, "{script}");
        assert_eq!(record.exit, exit, "{script}");
    }
}

#[test]
fn the_second_attempt_comes_after_the_first_ones_leftovers() {
    for fence in fences() {
        let bench = Bench::new();
        let mut request = bench.request("(trap '' TERM; sleep 1000) & echo gone >&2; exit 1", fence);
        request.fallback =
            Some(Fallback { markers: vec!["gone".into()], command: bench.shell("echo second") });
        let shim = bench.start(&request);
        let (printed, record) = bench.ended(shim);
        let expected = format!("{}\nsecond\n", sentinel::restart_note(&Bench::secret()));
        assert_eq!((String::from_utf8_lossy(&printed).into_owned(), record.exit), (expected, 0), "{fence:?}");
    }
}

/// A reader that sees the sentinel's first byte can find out that it is not the agent's.
#[test]
fn the_exit_is_written_before_the_sentinel() {
    let bench = Bench::new();
    let inotify =
        inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).expect("inotify");
    inotify::add_watch(&inotify, bench.runs(), inotify::WatchFlags::MODIFY).expect("watch");
    let shim = bench.launch("printf x", FenceChoice::Auto);
    bench.ended(shim);
    let mut written = Vec::new();
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(&inotify, &mut buffer);
    while let Ok(event) = events.next() {
        written.push(event.file_name().expect("name").to_string_lossy().into_owned());
    }
    let last = |suffix: &str| written.iter().rposition(|name| name.ends_with(suffix)).expect("written");
    assert!(last(files::EXIT) < last(files::JOURNAL), "{written:?}");
    assert_eq!(
        written.iter().filter(|name| name.ends_with(files::JOURNAL)).count(),
        2,
        "one append each: {written:?}"
    );
}

#[test]
fn a_stop_prevents_the_second_attempt() {
    let bench = Bench::new();
    let mut request = bench.request(
        "trap 'echo gone >&2; exit 1' TERM; touch up; while :; do sleep 0.1; done",
        FenceChoice::Auto,
    );
    let command = bench.shell("echo second");
    request.fallback = Some(Fallback { markers: vec!["gone".into()], command });
    let shim = bench.start(&request);
    bench.until_file("up");
    shim.signal(Signal::TERM);
    let (printed, record) = bench.ended(shim);
    assert_eq!((printed.len(), record.exit), (0, 1));
}
