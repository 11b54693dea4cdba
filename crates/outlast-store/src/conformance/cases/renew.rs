//! One call lengthens the leases that it names and tells what their owner needs to know.

use std::time::Duration;

use outlast_core::run::{CancelReason, ClaimToken, Purpose};

use crate::conformance::world::{Host, LEASE, World, run_id};

async fn renewed(host: &Host, tokens: &[&ClaimToken]) -> Vec<(String, u64, Option<CancelReason>)> {
    let renewed = host.renew(tokens).await;
    let mut renewed: Vec<_> = renewed
        .into_iter()
        .map(|one| {
            assert_eq!(one.lease, LEASE, "nobody is in the way");
            (one.run_id.as_str().to_owned(), one.epoch, one.cancel.map(|cancel| cancel.reason))
        })
        .collect();
    renewed.sort_by(|one, other| one.0.cmp(&other.0));
    renewed
}

/// What the owner names is held for another lease from now on; what others hold is not, whoever names it.
pub async fn lengthens_what_is_held(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let (r1, r2) = (a.accept("r1", "t1").await.token, a.accept("r2", "t2").await.token);
    let other = b.accept("other", "t3").await.token;
    world.pass(Duration::from_secs(7)).await;
    assert_eq!(
        renewed(&a, &[&r1, &r2, &other]).await,
        [("r1".to_owned(), 1, None), ("r2".to_owned(), 1, None)]
    );
    world.pass(Duration::from_secs(7)).await;
    for run in ["r1", "r2"] {
        assert_eq!(a.record(run).await.driver.expect("held").lease_remaining, 3_000);
        assert!(b.claim(run, Purpose::Drive).await.is_err());
    }
    a.claim("other", Purpose::Drive).await.expect("its lease has run out");
}

/// A claim that its owner does not name runs out, whatever else the owner renews: nobody may know of it any more, as where
/// the answer that granted it was lost.
pub async fn leaves_alone_what_is_not_named(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let kept = a.accept("kept", "t1").await.token;
    a.accept("forgotten", "t2").await;
    for remaining in [10_000, 5_000] {
        assert_eq!(renewed(&a, &[&kept]).await.len(), 1);
        assert_eq!(a.record("forgotten").await.driver.expect("for now").lease_remaining, remaining);
        world.pass(LEASE / 2).await;
    }
    assert_eq!(a.renew(&[]).await, []);
    assert!(b.claim("kept", Purpose::Drive).await.is_err());
    assert_eq!(b.claim("forgotten", Purpose::Drive).await.expect("it has run out").token.epoch, 2);
}

/// The answer carries the cancel of each run.
pub async fn tells_of_cancels(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let (r1, r2) = (a.accept("r1", "t1").await.token, a.accept("r2", "t2").await.token);
    b.store.request_cancel(&b.tenant, &run_id("r2"), CancelReason::Disconnect, None).await.expect("recorded");
    let disconnect = Some(CancelReason::Disconnect);
    assert_eq!(
        renewed(&a, &[&r1, &r2]).await,
        [("r1".to_owned(), 1, None), ("r2".to_owned(), 1, disconnect)]
    );
}

/// Claims that were lost or given back, and runs that ended, are missing from the answer, and stay as they are.
pub async fn leaves_out_what_is_lost(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let kept = a.accept("kept", "kept").await;
    let lost = a.accept("lost", "lost").await;
    let again = a.accept("again", "again").await;
    let ended = a.accept("ended", "ended").await;
    let released = a.accept("released", "released").await;
    world.pass(LEASE).await;
    b.claim("lost", Purpose::Drive).await.expect("granted");
    let current = a.claim("again", Purpose::Drive).await.expect("granted");
    a.complete(&ended.token, 1).await.expect("ended");
    a.store.release(&released.token).await.expect("released");
    let runs = ["lost", "again", "ended", "released"];
    let mut before = Vec::new();
    for run in runs {
        before.push(b.snapshot(run).await);
    }
    let named = [&kept, &lost, &again, &ended, &released].map(|claimed| &claimed.token);
    // Nobody has claimed what merely lapsed, so it is still held; an earlier claim of the same owner is not.
    assert_eq!(renewed(&a, &named).await, [("kept".to_owned(), 1, None)]);
    for (run, before) in runs.into_iter().zip(before) {
        assert_eq!(b.snapshot(run).await, before);
    }
    assert_eq!(renewed(&a, &[&current.token]).await, [("again".to_owned(), 2, None)]);
}

/// Of a renewal that comes late and a claim, at once, one is first, and the other is told.
pub async fn racing_a_claim(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    for round in 0..20 {
        let run = format!("r{round}");
        let token = a.accept(&run, &run).await.token;
        world.pass(LEASE).await;
        let renewing = tokio::spawn({
            let (a, token) = (a.clone(), token.clone());
            async move { a.renew(&[&token]).await.len() }
        });
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        let claimed = b.claim(&run, Purpose::Drive).await;
        let renewed = renewing.await.expect("it ends") == 1;
        assert_ne!(renewed, claimed.is_ok(), "two winners or none");
        let driver = a.record(&run).await.driver.expect("driven").owner;
        assert_eq!(driver, if renewed { a.owner.clone() } else { b.owner.clone() });
    }
}
