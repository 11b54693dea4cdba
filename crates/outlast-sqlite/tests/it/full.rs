//! The disk is full for a while.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use outlast_core::Seq;
use outlast_core::run::CancelReason;
use outlast_store::{AppendError, RecordsError, StoreError};

use super::support::{append_of, checkpoint, completion, host, ledger, records};

/// A file system of its own, or none where this user may not mount one.
struct Small(PathBuf);

impl Small {
    fn mount(on: &Path) -> Option<Self> {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=12m", "tmpfs"]).arg(on).status();
        mounted.is_ok_and(|status| status.success()).then(|| Small(on.to_owned()))
    }

    fn fill(&self) -> PathBuf {
        let file = self.0.join("filler");
        let filled = std::fs::write(&file, vec![7; 16 << 20]);
        assert!(filled.is_err(), "it is full now");
        file
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Says so where it is seen: the test runner hides what the macros print.
fn skipped(name: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED full::{name}: mounting a tmpfs needs root");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_and_nothing_comes_twice() {
    let dir = tempfile::tempdir().unwrap();
    let Some(small) = Small::mount(dir.path()) else {
        skipped("nothing_is_lost_and_nothing_comes_twice");
        return;
    };
    let host = host(&dir.path().join("data"), "here");
    let mut tasks = Vec::new();
    for n in 0..4 {
        let run = format!("r{n}");
        let token = host.accept(&run, &run).await.token;
        tasks.push((run, token));
    }
    let adding = host.accept("ledger", "ledger").await.token;
    let filler = small.fill();
    let (freed, room) = tokio::sync::watch::channel(false);
    let (full, mut seen) = tokio::sync::mpsc::channel(100);
    let running: Vec<_> = tasks
        .into_iter()
        .map(|(run, token)| {
            let (host, room, full) = (host.clone(), room.clone(), full.clone());
            tokio::spawn(async move {
                let mut tail = 1;
                while tail < 60 || !*room.borrow() {
                    let append = append_of(&token, tail, 10_000);
                    loop {
                        match host.store.append(append.clone()).await {
                            Ok(appended) => break assert_eq!(appended.tail, Seq(tail + 1)),
                            Err(AppendError::Store(StoreError::Unavailable { message })) => {
                                let _ = full.try_send(message);
                                tokio::time::sleep(Duration::from_millis(2)).await;
                            }
                            Err(other) => panic!("{other:?}"),
                        }
                    }
                    tail += 1;
                    if tail > 2_000 {
                        panic!("the disk is never full");
                    }
                }
                (run, tail)
            })
        })
        .collect();
    // The ledger of a thread: records, and the end of its run.
    let writing = tokio::spawn({
        let (host, room) = (host.clone(), room.clone());
        async move {
            let mut n = 0;
            while n < 60 || !*room.borrow() {
                let wanted = records(&host, "ledger", vec![checkpoint(&n.to_string())]);
                match host.store.append_records(wanted).await {
                    Ok(_) => n += 1,
                    Err(error) => {
                        assert!(matches!(error, RecordsError::Store(error) if error.is_transient()))
                    }
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let end = completion(&adding, 1);
            while host.store.finish(end.clone()).await.is_err() {}
            n
        }
    });
    for _ in 0..20 {
        let message = seen.recv().await.unwrap();
        assert!(message.contains("outlast.db"), "{message}");
    }
    // What was written is read, and what needs no room beyond what there is, or fails, says so.
    assert!(!host.log("r0").await.is_empty());
    let run = outlast_core::RunId::new("r0").unwrap();
    let cancel = host.store.request_cancel(&host.tenant, &run, CancelReason::User, None).await;
    assert!(cancel.is_ok() || cancel.is_err_and(|error| error.is_transient()));
    std::fs::remove_file(filler).unwrap();
    freed.send(true).unwrap();
    for task in running {
        let (run, tail) = task.await.unwrap();
        let log = host.log(&run).await;
        assert_eq!(log.len() as u64, tail);
        assert!(log.iter().zip(1..).all(|(event, seq)| event.seq == Seq(seq)));
        assert_eq!(host.record(&run).await.tail, tail);
    }
    let added = writing.await.unwrap();
    let (head, found) = ledger(&host, "ledger").await;
    let ids: Vec<_> = found.iter().map(|record| record.id.as_str()).collect();
    assert_eq!((ids[0], ids[ids.len() - 1]), ("run_started/ledger", "run_ended/ledger"));
    assert!(ids[1..=added].iter().enumerate().all(|(n, id)| *id == n.to_string()) && ids.len() == added + 2);
    assert_eq!(head.fold.unwrap().checkpoints, added as u64);
    host.store.request_cancel(&host.tenant, &run, CancelReason::User, None).await.unwrap();
    host.store.close().await;
}

/// A process that starts on a full disk says so, and starts once there is room.
#[tokio::test]
async fn it_starts_when_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let Some(small) = Small::mount(dir.path()) else {
        skipped("it_starts_when_there_is_room");
        return;
    };
    let filler = small.fill();
    let data = dir.path().join("data");
    let refused = super::support::try_open(&data, "here").unwrap_err();
    assert!(refused.is_transient() && refused.to_string().contains("data"), "{refused}");
    std::fs::remove_file(filler).unwrap();
    host(&data, "here").accept("r", "t").await;
}
