//! Files that are damaged or not ours.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use outlast_core::run::Purpose;
use outlast_core::{RunId, Seq};
use outlast_store::{ReadError, StoreError};
use rusqlite::Connection;

use super::support::{append_of, host, try_open};

fn told(error: &StoreError, file: &Path) {
    let message = error.to_string();
    let name = file.display().to_string();
    assert!(!error.is_transient() && message.contains(&name), "{message}");
    assert!(message.contains("Stop all outlast processes") && message.contains("-wal"), "{message}");
}

#[tokio::test]
async fn a_damaged_page_is_told_with_the_file_and_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("outlast.db");
    let first = host(dir.path(), "first");
    let token = first.accept("r", "t").await.token;
    for tail in 1..200 {
        first.store.append(append_of(&token, tail, 1_000)).await.unwrap();
    }
    first.store.close().await;
    drop(first);
    let raw = OpenOptions::new().write(true).open(&file).unwrap();
    let pages = raw.metadata().unwrap().len() / 4096;
    for page in pages / 2..pages {
        raw.write_all_at(&[0xA5; 4096], page * 4096).unwrap();
    }
    drop(raw);
    let host = host(dir.path(), "second");
    let run = RunId::new("r").unwrap();
    match host.store.read(&host.tenant, &run, Seq::START, 1_000, 1 << 20).await {
        Err(ReadError::Store(error)) => told(&error, &file),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_that_is_no_database() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("outlast.db");
    std::fs::write(&file, "Dear diary, today I wanted to be a database.".repeat(200)).unwrap();
    told(&try_open(dir.path(), "here").unwrap_err(), &file);
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(kept.starts_with("Dear diary"), "what was not understood is left alone");
}

#[test]
fn a_database_of_somebody_else() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("outlast.db");
    let other = Connection::open(&file).unwrap();
    other.execute_batch("CREATE TABLE photos (id INTEGER PRIMARY KEY)").unwrap();
    drop(other);
    let error = try_open(dir.path(), "here").unwrap_err();
    assert!(!error.is_transient() && error.to_string().contains("is not a database of Outlast"), "{error}");
}

/// A row that no version wrote is damage, not a reason to panic.
#[tokio::test]
async fn a_row_that_makes_no_sense() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("outlast.db");
    let host = host(dir.path(), "here");
    host.accept("r", "t").await;
    let run = RunId::new("r").unwrap();
    for (broken, mended) in [
        ("UPDATE runs SET status = 'dancing'", "UPDATE runs SET status = 'running'"),
        ("UPDATE specs SET json = '{'", "UPDATE specs SET json = NULL"),
    ] {
        let raw = Connection::open(&file).unwrap();
        raw.execute_batch(broken).unwrap();
        told(&host.store.run(&host.tenant, &run).await.unwrap_err(), &file);
        let _ = raw.execute_batch(mended);
    }
}

/// One write that cannot be done does not take those with it that share its commit.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_fails_fails_alone() {
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path(), "here");
    let mut tokens = Vec::new();
    for run in ["r0", "bad", "r1", "r2"] {
        tokens.push(host.accept(run, run).await.token);
    }
    let released = host.accept("claimed", "claimed").await.token;
    host.store.release(&released).await.unwrap();
    let raw = Connection::open(dir.path().join("outlast.db")).unwrap();
    raw.execute_batch("UPDATE runs SET status = 'dancing' WHERE run_id = 'bad'").unwrap();
    for tail in 1..6 {
        // While the database is held, they gather.
        raw.execute_batch("BEGIN IMMEDIATE").unwrap();
        let writing: Vec<_> = tokens
            .iter()
            .map(|token| {
                let (host, token) = (host.clone(), token.clone());
                tokio::spawn(async move { host.append(&token, tail, &["x"]).await })
            })
            .collect();
        let claiming = tokio::spawn({
            let host = host.clone();
            async move { host.claim("claimed", Purpose::Drive).await }
        });
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        raw.execute_batch("COMMIT").unwrap();
        for (n, task) in writing.into_iter().enumerate() {
            let answer = task.await.unwrap();
            assert_eq!(answer.is_ok(), n != 1, "{n}: {answer:?}");
        }
        // The first attempt of the batch has left nothing behind, so the second one grants it.
        let claimed = claiming.await.unwrap().unwrap();
        assert_eq!(claimed.token.epoch, tail + 1);
        host.store.release(&claimed.token).await.unwrap();
    }
    raw.execute_batch("UPDATE runs SET status = 'running' WHERE run_id = 'bad'").unwrap();
    assert_eq!((host.log("bad").await.len(), host.log("r2").await.len()), (1, 6));
}
