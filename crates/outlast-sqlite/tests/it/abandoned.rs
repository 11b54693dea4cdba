//! Callers that go away, and stores that do.

use std::time::Duration;

use outlast_core::RunId;
use outlast_core::run::Purpose;
use outlast_store::{AppendError, StoreError};
use rusqlite::Connection;

use super::support::{config, eventually, host, host_with};

/// A claim whose caller has stopped waiting is not held by anybody.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_nobody_hears_of_is_given_back() {
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path(), "here");
    let token = host.accept("r", "t").await.token;
    host.store.release(&token).await.unwrap();
    // The writer is held up, so that the caller goes while its claim is in flight or in the queue.
    let other = Connection::open(dir.path().join("outlast.db")).unwrap();
    for accept in [false, true] {
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let (caller, in_flight) = (host.clone(), host.clone());
        let first = tokio::spawn(async move {
            if accept {
                caller.store.accept(caller.request("r2", "t2")).await.is_ok()
            } else {
                caller.claim("r", Purpose::Drive).await.is_ok()
            }
        });
        let second = tokio::spawn(async move { in_flight.claim("r", Purpose::Drive).await.is_ok() });
        tokio::time::sleep(Duration::from_millis(50)).await;
        first.abort();
        second.abort();
        let _ = (first.await, second.await);
        other.execute_batch("COMMIT").unwrap();
        // Well before the lease would have ended by itself.
        eventually("it is granted to somebody else", Duration::from_secs(7), async || {
            match host.claim("r", Purpose::Drive).await {
                Ok(claimed) => host.store.release(&claimed.token).await.is_ok(),
                Err(_) => false,
            }
        })
        .await;
    }
    // Accepted or not: in the first case nobody holds it.
    let run = host.store.run(&host.tenant, &RunId::new("r2").unwrap()).await.unwrap();
    assert!(run.is_none_or(|run| run.driver.is_none()));
}

#[tokio::test]
async fn a_closed_store_says_so_and_a_dropped_one_holds_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let closed = host(dir.path(), "closed");
    let token = closed.accept("r1", "t1").await.token;
    closed.store.close().await;
    closed.store.close().await;
    match closed.append(&token, 1, &["late"]).await {
        Err(AppendError::Store(StoreError::Unavailable { message })) => assert!(message.contains("closed")),
        other => panic!("{other:?}"),
    }
    assert!(closed.store.run(&closed.tenant, &token.run_id).await.is_err());

    let dropped = host_with(config(dir.path(), "dropped"));
    dropped.accept("r2", "t2").await;
    drop(dropped);
    let here = host(dir.path(), "here");
    for run in ["r1", "r2"] {
        here.claim(run, Purpose::Drive).await.unwrap();
    }
}

/// What was queued before the store was closed is written.
#[tokio::test(flavor = "multi_thread")]
async fn closing_waits_for_what_is_in_flight() {
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path(), "here");
    let mut tasks = Vec::new();
    for n in 0..20 {
        let token = host.accept(&format!("r{n}"), &format!("t{n}")).await.token;
        let host = host.clone();
        tasks.push(tokio::spawn(async move { host.append(&token, 1, &["x"]).await }));
    }
    tokio::task::yield_now().await;
    host.store.close().await;
    let mut told = 0;
    for task in tasks {
        told += usize::from(task.await.unwrap().is_ok());
    }
    let later = super::support::host(dir.path(), "later");
    let mut stored = 0;
    for n in 0..20 {
        stored += later.log(&format!("r{n}")).await.len() - 1;
    }
    assert_eq!(stored, told);
}
