//! The write-ahead log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outlast_core::{RunId, Seq};

use super::support::{append_of, host};

/// Readers that take turns without a gap, one of them slow, in this process and as another, do not make it grow.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_stays_small_whoever_reads() {
    let dir = tempfile::tempdir().unwrap();
    let (writer, other) = (host(dir.path(), "writer"), host(dir.path(), "other"));
    let token = writer.accept("r", "t").await.token;
    let done = Arc::new(AtomicBool::new(false));
    let run = RunId::new("r").unwrap();
    let readers: Vec<_> = [(&writer, 0), (&writer, 0), (&other, 0), (&other, 0), (&other, 20)]
        .into_iter()
        .map(|(host, pause)| {
            let (host, done, run) = (host.clone(), done.clone(), run.clone());
            tokio::spawn(async move {
                while !done.load(Ordering::Relaxed) {
                    let mut after = Seq::START;
                    loop {
                        let page = host.store.read(&host.tenant, &run, after, 100, 1 << 20).await.unwrap();
                        let Some(last) = page.events.last() else { break };
                        after = last.seq;
                        tokio::time::sleep(Duration::from_millis(pause)).await;
                    }
                }
            })
        })
        .collect();
    let mut largest = 0;
    for tail in 1..=800 {
        writer.store.append(append_of(&token, tail, 100_000)).await.unwrap();
        largest = largest.max(std::fs::metadata(dir.path().join("outlast.db-wal")).unwrap().len());
    }
    done.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
    // 80 MB went through it; it is looked at every 64 commits, each of which is of 100 kB here.
    assert!(largest < 40 << 20, "it grew to {largest} bytes");
    assert_eq!(writer.record("r").await.tail, 801);
}
