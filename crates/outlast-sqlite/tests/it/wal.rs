//! The write-ahead log.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outlast_core::{RunId, Seq};
use outlast_store::conformance::Host;
use rusqlite::Connection;

use super::support::{append_of, host};

/// Pages through the log again and again, with a pause after each page.
async fn page_through(host: Host, pause: Duration, done: Arc<AtomicBool>) {
    let run = RunId::new("r").unwrap();
    while !done.load(Ordering::Relaxed) {
        let mut after = Seq::START;
        loop {
            let page = host.store.read(&host.tenant, &run, after, 100, 1 << 20).await.unwrap();
            let Some(last) = page.events.last() else { break };
            after = last.seq;
            tokio::time::sleep(pause).await;
        }
    }
}

/// Holds a snapshot for a moment, again and again.
fn hold_snapshots(dir: &Path, done: &AtomicBool) {
    let db = Connection::open(dir.join("outlast.db")).unwrap();
    while !done.load(Ordering::Relaxed) {
        db.execute_batch("BEGIN; SELECT count(*) FROM meta;").unwrap();
        std::thread::sleep(Duration::from_millis(30));
        db.execute_batch("COMMIT").unwrap();
    }
}

/// Readers that take turns without a gap, so that there is always one with an older snapshot, do not make it grow.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_stays_small_whoever_reads() {
    let dir = tempfile::tempdir().unwrap();
    let (writer, other) = (host(dir.path(), "writer"), host(dir.path(), "other"));
    let token = writer.accept("r", "t").await.token;
    let done = Arc::new(AtomicBool::new(false));
    let readers = [(&writer, 1), (&other, 1), (&other, 20)].map(|(host, pause)| {
        tokio::spawn(page_through(host.clone(), Duration::from_millis(pause), done.clone()))
    });
    let holders: Vec<_> = (0..3)
        .map(|n| {
            std::thread::sleep(Duration::from_millis(n * 10));
            let (dir, done) = (dir.path().to_owned(), done.clone());
            std::thread::spawn(move || hold_snapshots(&dir, &done))
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
    for holder in holders {
        holder.join().unwrap();
    }
    assert_eq!(writer.record("r").await.tail, 801);
    // 80 MB went through it; it is looked at every 64 commits, of 100 kB each here.
    assert!(largest < 64 << 20, "it grew to {largest} bytes");
}
