//! Somebody else holds the database.

use std::time::{Duration, Instant};

use outlast_core::run::Purpose;
use outlast_store::{AppendError, StoreError};
use rusqlite::Connection;

use super::support::{append_of, config, host, host_with};

#[tokio::test]
async fn a_write_says_who_is_in_the_way_and_succeeds_later() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path(), "here");
    config.lock_wait = Duration::from_millis(200);
    let host = host_with(config);
    let token = host.accept("r", "t").await.token;
    let other = Connection::open(dir.path().join("outlast.db")).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();

    let append = append_of(&token, 1, 10);
    match host.store.append(append.clone()).await {
        Err(AppendError::Store(StoreError::Unavailable { message })) => {
            assert!(message.contains("outlast.db is locked by another process"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(host.log("r").await.len(), 1, "reading goes on");
    assert!(host.claim("r", Purpose::Drive).await.is_err());
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(host.store.append(append.clone()).await.unwrap().tail.0, 2);
    assert_eq!(host.store.append(append).await.unwrap().tail.0, 2);
    assert_eq!(host.log("r").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_waits_for_a_while() {
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path(), "here");
    let token = host.accept("r", "t").await.token;
    let other = Connection::open(dir.path().join("outlast.db")).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let start = Instant::now();
    let held = Duration::from_millis(700);
    let (appended, ()) = tokio::join!(host.append(&token, 1, &["x"]), async {
        tokio::time::sleep(held).await;
        other.execute_batch("COMMIT").unwrap();
    });
    appended.unwrap();
    assert!(start.elapsed() >= held);
}

/// Two processes that both write without a pause both get on.
#[tokio::test(flavor = "multi_thread")]
async fn writers_of_two_processes_take_turns() {
    let dir = tempfile::tempdir().unwrap();
    let hosts = [host(dir.path(), "a"), host(dir.path(), "b")];
    let running: Vec<_> = hosts
        .into_iter()
        .map(|host| {
            tokio::spawn(async move {
                let run = host.owner.as_str().to_owned();
                let token = host.accept(&run, &run).await.token;
                let mut slowest = Duration::ZERO;
                for tail in 1..300 {
                    let start = Instant::now();
                    host.append(&token, tail, &["x"]).await.unwrap();
                    slowest = slowest.max(start.elapsed());
                }
                slowest
            })
        })
        .collect();
    for writer in running {
        let slowest = writer.await.unwrap();
        assert!(slowest < Duration::from_secs(3), "one append took {slowest:?}");
    }
}
