//! Callers that go away, and stores that do.

use std::time::Duration;

use outlast_core::RunId;
use outlast_core::run::Purpose;
use outlast_store::conformance::Host;
use outlast_store::{AcquireLease, AppendError, Entropy, LeaseOn, StoreError, SystemEntropy};
use rusqlite::Connection;

use super::support::{config, eventually, host, host_with, ledger};

fn wish(host: &Host, on: &LeaseOn) -> AcquireLease {
    let lasts = Duration::from_secs(3600);
    AcquireLease { on: on.clone(), owner: host.owner.clone(), nonce: SystemEntropy.nonce(), lasts }
}

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
    let on_session = LeaseOn::Session(ledger(&closed, "t1").await.0.session_id);
    closed.store.acquire_lease(&wish(&closed, &on_session)).await.unwrap();
    closed.store.close().await;
    closed.store.close().await;
    match closed.append(&token, 1, &["late"]).await {
        Err(AppendError::Store(StoreError::Unavailable { message })) => assert!(message.contains("closed")),
        other => panic!("{other:?}"),
    }
    assert!(closed.store.run(&closed.tenant, &token.run_id).await.is_err());

    let dropped = host_with(config(dir.path(), "dropped"));
    dropped.accept("r2", "t2").await;
    let first = dropped.store.acquire_lease(&wish(&dropped, &LeaseOn::Workspaces)).await.unwrap().token;
    drop(dropped);
    let here = host(dir.path(), "here");
    for run in ["r1", "r2"] {
        here.claim(run, Purpose::Drive).await.unwrap();
    }
    assert_eq!(ledger(&here, "t1").await.0.lease, None);
    let raw = Connection::open(dir.path().join("outlast.db")).unwrap();
    let holders = raw.query_row("SELECT group_concat(owner) FROM leases", [], |row| row.get::<_, String>(0));
    assert_eq!(holders.unwrap(), "dropped", "the other has given its lease back itself");
    here.store.acquire_lease(&wish(&here, &on_session)).await.unwrap();
    assert!(!here.store.renew_lease(&first, Duration::from_secs(60)).await.unwrap(), "its owner is dead");
    let second = here.store.acquire_lease(&wish(&here, &LeaseOn::Workspaces)).await.unwrap();
    assert_eq!(second.token.epoch, first.epoch + 1);
}

/// A pin that has run out is forgotten with its process, and not before: set again it would look like a new one.
#[tokio::test]
async fn a_pin_that_has_run_out_stays_as_long_as_its_process() {
    let dir = tempfile::tempdir().unwrap();
    let (here, other) = (host(dir.path(), "here"), host(dir.path(), "other"));
    let (late, of_other) = (SystemEntropy.nonce(), SystemEntropy.nonce());
    let soon = Duration::from_millis(1);
    here.store.pin(&late, &here.owner, soon).await.unwrap();
    other.store.pin(&of_other, &other.owner, soon).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let kept = || {
        let raw = Connection::open(dir.path().join("outlast.db")).unwrap();
        raw.query_row("SELECT count(*) FROM pins", [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let day = Duration::from_secs(86_400);
    here.store.pin(&SystemEntropy.nonce(), &here.owner, day).await.unwrap();
    assert_eq!(kept(), 3);
    drop(other);
    here.store.pin(&SystemEntropy.nonce(), &here.owner, day).await.unwrap();
    assert_eq!(kept(), 3, "that of the dead process has gone");
    assert_eq!(here.store.pin(&late, &here.owner, day).await.unwrap(), None);
    assert_eq!(here.store.pins().await.unwrap().len(), 2);
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
