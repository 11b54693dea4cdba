//! Ends that nobody asked for.

use outlast_core::journal::files;
use outlast_core::journal::latch::Fence;
use outlast_core::shim::FenceChoice;
use outlast_shim::fence::cgroup;
use outlast_shim::process;
use rustix::process::Signal;

use crate::bench::{Bench, fences, until};

#[test]
fn an_agent_that_is_killed_has_an_exit() {
    for fence in fences() {
        let bench = Bench::new();
        let shim = bench.launch("echo $$ > pid; sleep 1000 & wait", fence);
        until("the agent", || !bench.census().is_empty() && bench.dir.path().join("pid").exists());
        let agent = bench.census()[0];
        let agent = rustix::process::Pid::from_raw(agent).expect("pid");
        rustix::process::kill_process(agent, Signal::KILL).expect("kill");
        let (_, record) = bench.ended(shim);
        assert_eq!((record.exit, record.signal, record.cause), (137, Some(9), None), "{fence:?}");
    }
}

#[test]
fn the_agent_dies_with_its_shim() {
    for fence in fences() {
        let bench = Bench::new();
        // Only a namespace takes the others along; a cgroup is killed by whoever finds it.
        let others = if fence == FenceChoice::PidNamespace {
            format!("setsid sh -c ': {}; while :; do sleep 1; done' &", bench.marker)
        } else {
            String::new()
        };
        let shim =
            bench.launch(&format!("trap '' TERM\n{others}\ntouch up; while :; do sleep 1; done"), fence);
        bench.until_file("up");
        assert!(bench.is_locked());
        let launch = bench.launched();
        // A keeper that cannot do anything any more dies too.
        process::signal(bench.keeper(), Signal::STOP).expect("stop");
        shim.signal(Signal::KILL);
        shim.wait();
        bench.until_nothing_lives();
        if let Fence::Cgroup { path, .. } = launch.fence {
            cgroup::remove(std::path::Path::new(&path));
        }
        assert!(!bench.is_locked(), "{fence:?}: the lock says that the shim lives, nothing else");
        assert_eq!(bench.exit(), None);
    }
}

#[test]
fn a_killed_keeper_takes_the_tree_along() {
    for fence in fences() {
        let bench = Bench::new();
        let script = format!(
            "setsid sh -c ': {}; trap \"\" TERM; touch up; while :; do sleep 1; done' & echo hi; sleep 1000",
            bench.marker
        );
        let shim = bench.launch(&script, fence);
        bench.until_file("up");
        assert!(process::signal(bench.keeper(), Signal::KILL).expect("kill"));
        let (printed, record) = bench.ended(shim);
        assert_eq!(
            (printed.as_slice(), record.exit, record.signal),
            (&b"hi\n"[..], 137, Some(9)),
            "{fence:?}"
        );
        assert!(bench.census().is_empty(), "{fence:?}");
    }
}

#[test]
fn a_journal_that_the_agent_reaches_is_still_the_shims() {
    let bench = Bench::new();
    let journal = bench.file(files::JOURNAL);
    let mut request = bench.request(
        &format!("echo forged >> {0}; echo one; true > {0}; echo two", journal.display()),
        FenceChoice::PidNamespace,
    );
    request.hide = vec![bench.runs().to_str().expect("text").to_owned()];
    let shim = bench.start(&request);
    if !matches!(shim.report, Some(outlast_core::shim::ShimReport::Launched)) {
        eprintln!("skipped: no PID namespace: {:?}", shim.report);
        return;
    }
    let (printed, _) = bench.ended(shim);
    assert_eq!(String::from_utf8_lossy(&printed), "one\ntwo\n");
}
