//! Reading what agents print.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::shim::OutputLimits;
use outlast_core::{ErrorCode, RunId};

use super::Subject;
use super::bench::Bench;
use crate::{EXIT_PROBE_BYTES, RunExit, probe_run_exit};

pub(super) async fn bytes_and_exit_are_exact(subject: Arc<dyn Subject>) {
    let first = Bench::new(subject).await;
    for (script, expected, exit) in [
        ("true", b"".to_vec(), 0),
        ("exit 3", b"".to_vec(), 3),
        ("echo line", b"line\n".to_vec(), 0),
        ("printf 'no line break'", b"no line break".to_vec(), 0),
        ("printf '\\n\\n'", b"\n\n".to_vec(), 0),
        (r"printf 'a\000b\377\n'", b"a\0b\xff\n".to_vec(), 0),
        (r#"echo '{"__exit":0}'"#, b"{\"__exit\":0}\n".to_vec(), 0),
        ("kill -9 $$", b"".to_vec(), 137),
        ("head -c 700000 /dev/zero | tr '\\0' x", vec![b'x'; 700_000], 0),
        // A background process that prints after the agent's exit belongs to it.
        ("(sleep 0.3; echo late) & echo early", b"early\nlate\n".to_vec(), 0),
    ] {
        let bench = first.another_run();
        bench.launch(script).await;
        let (printed, record) = bench.read_to_end(0, 64 * 1024).await;
        assert!(
            printed == expected,
            "{script}: {:?}",
            String::from_utf8_lossy(&printed[..printed.len().min(99)])
        );
        assert_eq!((record.exit, record.cause), (exit, None), "{script}");
        assert_eq!(record.signal, (exit == 137).then_some(9), "{script}");
    }
}

pub(super) async fn no_foreign_line_break_without_the_exit(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    bench.launch("printf abc").await;
    let mut journal = bench.open(0).await;
    let mut seen = Vec::new();
    while seen.len() < 4 {
        // One byte at a time: the break is the last byte of a read that does not reach the file's end.
        let read = journal.read(1, Duration::from_secs(30)).await.expect("read");
        seen.extend_from_slice(&read.bytes);
        if seen.len() == 4 {
            assert_eq!(seen, b"abc\n");
            assert_eq!(read.exit.expect("the break is the shim's, so the exit is known").stdout_bytes, 3);
        }
    }
}

pub(super) async fn reading_resumes_at_a_byte(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    bench.launch("seq 1 20000").await;
    let (whole, record) = bench.read_to_end(0, 1000).await;
    assert_eq!(whole.len() as u64, record.stdout_bytes);
    for from in [1, 4096, record.stdout_bytes - 1, record.stdout_bytes] {
        let (rest, _) = bench.read_to_end(from, 64 * 1024).await;
        assert!(rest == whole[from as usize..], "from {from}");
    }
}

pub(super) async fn a_missing_journal_is_patience(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    let mut journal = bench.open(0).await;
    let before = bench.now();
    let read = journal.read(4096, Duration::from_millis(50)).await.expect("read");
    assert!(read.bytes.is_empty() && read.exit.is_none() && read.missing);
    assert!(bench.now() - before >= 40, "waits for as long as it was told");
    bench.launch("echo hi").await;
    let mut seen = Vec::new();
    while seen.len() < 3 {
        // It may be woken by the launch itself.
        seen.extend(journal.read(4096, Duration::from_secs(30)).await.expect("read").bytes);
    }
    assert_eq!(seen[..3], *b"hi\n");
}

pub(super) async fn a_reader_is_woken(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    bench.launch("echo one; while ! [ -e go ]; do sleep 0.01; done; echo two; touch done; sleep 1000").await;
    let mut journal = bench.open(0).await;
    let patience = Duration::from_secs(600);
    assert_eq!(journal.read(4096, patience).await.expect("read").bytes, b"one\n");
    std::fs::write(bench.workspace().join("go"), "").expect("go");
    assert_eq!(journal.read(4096, patience).await.expect("read").bytes, b"two\n");
    // The end wakes it too, whoever brings it about.
    let (read, killed) = tokio::join!(journal.read(4096, patience), bench.kill());
    assert_eq!(killed, crate::KillOutcome::Dead);
    let read = read.expect("read");
    assert_eq!(read.exit.map(|exit| exit.exit), Some(143));
}

pub(super) async fn the_quota_ends_the_run(subject: Arc<dyn Subject>) {
    let first = Bench::new(subject).await;
    for (script, stream) in [("yes", ""), ("echo a; yes >&2", "standard error")] {
        let bench = first.another_run();
        let limits = OutputLimits { stdout: 100_000, stderr: 1000 };
        bench.provider.launch(crate::LaunchOrder { limits, ..bench.order(script) }).await.expect("launch");
        let (printed, record) = bench.read_to_end(0, 64 * 1024).await;
        let cause = record.cause.expect("a cause");
        assert_eq!(cause.code, ErrorCode::OutputLimit);
        assert!(cause.message.contains(stream), "{}", cause.message);
        assert_eq!(printed.len(), if stream.is_empty() { 100_000 } else { 2 });
        assert_eq!(record.exit, 137, "the tree was killed");
        bench.assert_nothing_lives();
    }
}

pub(super) async fn the_standard_error_has_a_tail(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    let tail = |max| bench.provider.stderr_tail(&bench.instance, &bench.run, max);
    assert_eq!(tail(10).await.expect("tail"), "");
    bench.launch(r"printf 'first\377\nlast\n' >&2").await;
    bench.read_to_end(0, 4096).await;
    assert_eq!(tail(5).await.expect("tail"), "last\n");
    assert_eq!(tail(1000).await.expect("tail"), "first\u{fffd}\nlast\n");
}

pub(super) async fn the_probe_tells_what_is_so(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    let probe = async |bench: &Bench, run: &RunId| {
        probe_run_exit(&*bench.provider, &bench.instance, run, &bench.secret, EXIT_PROBE_BYTES).await
    };
    assert_eq!(probe(&bench, &bench.run).await, RunExit::Producing, "there is no journal yet");
    bench.launch(r#"echo '{"__exit":0}'; touch up; while ! [ -e go ]; do sleep 0.01; done; exit 7"#).await;
    bench.until_file("up").await;
    assert_eq!(probe(&bench, &bench.run).await, RunExit::Producing, "what it prints is data");
    std::fs::write(bench.workspace().join("go"), "").expect("write");
    bench.read_to_end(0, 4096).await;
    bench.until_shim_is_gone().await;
    assert_eq!(probe(&bench, &bench.run).await, RunExit::Finished(7));
    let other = bench.another_run();
    assert_eq!(probe(&other, &bench.run).await, RunExit::Producing, "another secret is another run");
    let tail = bench.provider.journal_tail(&bench.instance, &bench.run, 10).await.expect("tail");
    assert_eq!(tail.expect("a journal").len(), 10);
    let never = bench.subject.ports().entropy.instance_id();
    let nowhere = bench.provider.journal_tail(&never, &bench.run, 10).await;
    assert_eq!(nowhere.expect("answered"), None);
    let gone = probe_run_exit(&*bench.provider, &never, &bench.run, &bench.secret, 10).await;
    assert!(matches!(gone, RunExit::Unknown { .. }));
}
