//! One call lengthens the leases that an owner names and tells what it needs to know.

use std::time::Duration;

use outlast_core::run::{CancelReason, Purpose};

use crate::conformance::world::{Host, LEASE, World, run_id};

/// Renews the claims on these runs at epoch 1.
async fn renewed(host: &Host, runs: &[&str]) -> Vec<(String, u64, Option<CancelReason>)> {
    let held: Vec<_> = runs.iter().map(|run| (run_id(run), 1)).collect();
    let renewed = host.store.renew(&host.owner, &held, LEASE).await.expect("renewed");
    let mut renewed: Vec<_> = renewed
        .into_iter()
        .map(|one| (one.run_id.as_str().to_owned(), one.epoch, one.cancel.map(|cancel| cancel.reason)))
        .collect();
    renewed.sort_by(|one, other| one.0.cmp(&other.0));
    renewed
}

/// What the owner names and holds is held for another lease from now on; what others hold is not.
pub async fn lengthens_what_is_held(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    a.accept("r1", "t1").await;
    a.accept("r2", "t2").await;
    b.accept("other", "t3").await;
    world.pass(Duration::from_secs(7)).await;
    assert_eq!(
        renewed(&a, &["r1", "r2", "other"]).await,
        [("r1".to_owned(), 1, None), ("r2".to_owned(), 1, None)]
    );
    world.pass(Duration::from_secs(7)).await;
    for run in ["r1", "r2"] {
        assert_eq!(a.record(run).await.driver.expect("held").lease_remaining, 3_000);
        assert!(b.claim(run, Purpose::Drive).await.is_err());
    }
    a.claim("other", Purpose::Drive).await.expect("its lease has run out");
}

/// The answer carries the cancel of each run.
pub async fn tells_of_cancels(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    a.accept("r1", "t1").await;
    a.accept("r2", "t2").await;
    b.store.request_cancel(&b.tenant, &run_id("r2"), CancelReason::Disconnect).await.expect("recorded");
    let disconnect = Some(CancelReason::Disconnect);
    assert_eq!(
        renewed(&a, &["r1", "r2"]).await,
        [("r1".to_owned(), 1, None), ("r2".to_owned(), 1, disconnect)]
    );
}

/// Claims that were lost or given back, and runs that ended, are missing from the answer, and stay as they are.
pub async fn leaves_out_what_is_lost(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    for run in ["kept", "lost"] {
        a.accept(run, run).await;
    }
    let ended = a.accept("ended", "ended").await;
    let released = a.accept("released", "released").await;
    world.pass(LEASE).await;
    b.claim("lost", Purpose::Drive).await.expect("granted");
    a.complete(&ended.token, 1).await.expect("ended");
    a.store.release(&released.token).await.expect("released");
    let before = [b.snapshot("lost").await, b.snapshot("ended").await, b.snapshot("released").await];
    // Nobody has claimed what merely lapsed, so it is still held.
    let all = ["kept", "lost", "ended", "released", "none"];
    assert_eq!(renewed(&a, &all).await, [("kept".to_owned(), 1, None)]);
    let after = [b.snapshot("lost").await, b.snapshot("ended").await, b.snapshot("released").await];
    assert_eq!(before, after);
}

/// A claim that its owner does not name, or names with another epoch, runs out: the answer that granted it was lost, and
/// with it the knowledge that it is there.
pub async fn lets_run_out_what_is_not_named(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    for run in ["known", "unknown", "again"] {
        a.accept(run, run).await;
    }
    world.pass(LEASE).await;
    a.claim("again", Purpose::Drive).await.expect("granted");
    world.pass(Duration::from_secs(1)).await;
    assert_eq!(renewed(&a, &["known", "again"]).await, [("known".to_owned(), 1, None)]);
    assert_eq!(renewed(&a, &[]).await, []);
    world.pass(Duration::from_secs(9)).await;
    assert!(b.claim("known", Purpose::Drive).await.is_err());
    for run in ["unknown", "again"] {
        b.claim(run, Purpose::Drive).await.expect("it has run out");
    }
}
