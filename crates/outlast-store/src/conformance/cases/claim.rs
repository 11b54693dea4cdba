//! At most one owner holds the claim on a run.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::decide::ClaimRefusal;
use outlast_core::run::{CancelReason, Purpose, Status};

use crate::conformance::ManualClock;
use crate::conformance::world::{LEASE, World, all_at_once, run_id};
use crate::{Claim, ClaimError, Claimed, PresenceUntil};

fn refusal(answer: Result<Claimed, ClaimError>) -> ClaimRefusal {
    match answer {
        Err(ClaimError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

/// A refused claim says why and leaves everything as it was, the epoch included.
pub async fn refusals_write_nothing(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    assert!(matches!(refusal(b.claim("none", Purpose::Drive).await), ClaimRefusal::RunNotFound(_)));

    let claimed = a.accept("r", "t").await;
    let before = a.snapshot("r").await;
    for purpose in Purpose::ALL {
        let refused = refusal(b.claim("r", *purpose).await);
        let held = ClaimRefusal::ClaimHeld { owner: a.owner.clone(), remaining: 10_000 };
        assert_eq!(refused, held);
    }
    assert_eq!(a.snapshot("r").await, before);

    a.stop("r").await;
    a.store.release(&claimed.token).await.expect("released");
    let before = a.snapshot("r").await;
    assert_eq!(refusal(b.claim("r", Purpose::Drive).await), ClaimRefusal::Cancelled(CancelReason::User));
    assert_eq!(a.snapshot("r").await, before);

    let other = a.accept("ended", "t2").await;
    a.complete(&other.token, 1).await.expect("ended");
    let before = a.snapshot("ended").await;
    for purpose in Purpose::ALL {
        let refused = refusal(b.claim("ended", *purpose).await);
        assert_eq!(refused, ClaimRefusal::TerminalRun(Status::Completed));
    }
    assert_eq!(a.snapshot("ended").await, before);
}

/// Each grant is the next epoch with a nonce of its own; the record says who drives.
pub async fn every_grant_is_an_epoch(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let mut nonces = vec![a.accept("r", "t").await.token.nonce];
    for epoch in 2..8 {
        world.pass(LEASE).await;
        let host = if epoch % 2 == 0 { &b } else { &a };
        let claimed = host.claim("r", Purpose::Drive).await.expect("the lease has run out");
        assert_eq!(claimed.token.epoch, epoch);
        assert!(!nonces.contains(&claimed.token.nonce));
        nonces.push(claimed.token.nonce.clone());
        let record = a.record("r").await;
        assert_eq!(record, claimed.run);
        assert_eq!(record.driver_epoch, epoch);
        assert_eq!(record.driver.expect("driven").owner, host.owner);
    }
}

/// Of many claims at once, one is granted and the epoch moves by one.
pub async fn racing_claims(world: World) {
    let hosts = [world.host("a").await, world.host("b").await, world.host("c").await];
    let first = hosts[0].accept("r", "t").await;
    hosts[0].store.release(&first.token).await.expect("released");
    for round in 0..10 {
        let answers = all_at_once((0..15).map(|n| {
            let host = hosts[n % 3].clone();
            async move { host.claim("r", Purpose::Drive).await }
        }))
        .await;
        let granted: Vec<_> = answers.into_iter().filter_map(Result::ok).collect();
        assert_eq!(granted.len(), 1, "{granted:?}");
        assert_eq!(granted[0].token.epoch, 2 + round);
        assert_eq!(hosts[0].record("r").await.driver_epoch, 2 + round);
        hosts[1].store.release(&granted[0].token).await.expect("released");
    }
}

/// A lease holds until its last millisecond and not longer; the record then names no driver.
pub async fn a_lease_runs_out_exactly(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    a.accept("r", "t").await;
    world.pass(LEASE - Duration::from_millis(1)).await;
    let refused = refusal(b.claim("r", Purpose::Drive).await);
    assert!(matches!(refused, ClaimRefusal::ClaimHeld { remaining: 1.., .. }), "{refused:?}");
    world.pass(Duration::from_millis(1)).await;
    assert_eq!(b.record("r").await.driver, None);
    b.claim("r", Purpose::Drive).await.expect("granted");
}

/// A lease of another boot is void, however late its clock was.
pub async fn a_reboot_ends_a_lease(world: World) {
    if !world.backend.counts_from_boot() {
        return;
    }
    let before = world.host("a").await;
    before.accept("r", "t").await;
    let rebooted = Arc::new(ManualClock::new(1_700_000_001_000, 10, "boot-2"));
    let after = world.host_with("b", rebooted).await;
    assert_eq!(after.record("r").await.driver, None);
    let claimed = after.claim("r", Purpose::Drive).await.expect("granted");
    assert_eq!(claimed.token.epoch, 2);
    let held = claimed.run.driver.expect("driven").lease_remaining;
    assert_eq!(u128::from(held), LEASE.as_millis());
}

/// A claim that was given back is granted again at once.
pub async fn a_release_lets_the_next_in(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let claimed = a.accept("r", "t").await;
    a.store.release(&claimed.token).await.expect("released");
    assert_eq!(a.record("r").await.driver, None);
    assert_eq!(b.claim("r", Purpose::Drive).await.expect("granted").token.epoch, 2);
    assert!(a.append(&claimed.token, 1, &["late"]).await.is_err(), "what was given back does not write");
}

/// Giving back a claim that somebody else holds by now takes nothing from them.
pub async fn a_stale_release_does_nothing(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let stale = a.accept("r", "t").await;
    world.pass(LEASE).await;
    let current = b.claim("r", Purpose::Drive).await.expect("granted");
    let before = b.snapshot("r").await;
    a.store.release(&stale.token).await.expect("without effect");
    assert_eq!(b.snapshot("r").await, before);
    assert!(matches!(refusal(a.claim("r", Purpose::Drive).await), ClaimRefusal::ClaimHeld { .. }));
    b.append(&current.token, 1, &["still here"]).await.expect("written");
}

/// A process that closes its store holds nothing any more.
pub async fn closing_gives_claims_back(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    for run in ["r1", "r2"] {
        a.accept(run, run).await;
    }
    b.accept("other", "other").await;
    a.store.close().await;
    for run in ["r1", "r2"] {
        assert_eq!(b.record(run).await.driver, None);
        b.claim(run, Purpose::Drive).await.expect("granted");
    }
    assert!(b.record("other").await.driver.is_some(), "only its own");
    let reopened = world.host("a2").await;
    assert_eq!(reopened.record("r1").await.driver_epoch, 2);
}

/// An owner that holds the claim is refused a second one: two of its tasks never drive one run.
pub async fn an_owner_excludes_itself(world: World) {
    let a = world.host("a").await;
    a.accept("r", "t").await;
    let refused = refusal(a.claim("r", Purpose::Drive).await);
    assert!(matches!(refused, ClaimRefusal::ClaimHeld { owner, .. } if owner == a.owner));
}

/// The same wish again, while the claim is current, is granted with the same epoch and a lease from now; it writes as the
/// first would.
pub async fn the_same_wish_again(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let first = a.accept("r", "t").await;
    a.store.release(&first.token).await.expect("released");
    let wish = a.wish("r", Purpose::Drive);
    let granted = a.store.claim(wish.clone()).await.expect("granted");
    world.pass(LEASE - Duration::from_millis(1)).await;
    a.stop("r").await;
    let again = a.store.claim(wish.clone()).await.expect("what was granted was granted");
    assert_eq!((&again.token, again.token.epoch), (&granted.token, 2));
    assert!(again.run.cancel_requested.is_some());
    world.pass(LEASE - Duration::from_millis(1)).await;
    assert!(matches!(refusal(b.claim("r", Purpose::End).await), ClaimRefusal::ClaimHeld { .. }));
    a.append(&granted.token, 1, &["one writer"]).await.expect("written");
    // Somebody else's wish with the same nonce is another wish.
    let theirs = Claim { owner: b.owner.clone(), purpose: Purpose::End, ..wish.clone() };
    assert!(matches!(refusal(b.store.claim(theirs).await), ClaimRefusal::ClaimHeld { .. }));

    world.pass(LEASE).await;
    b.claim("r", Purpose::End).await.expect("granted");
    let before = b.snapshot("r").await;
    let refused = refusal(a.store.claim(Claim { purpose: Purpose::End, ..wish }).await);
    assert!(matches!(refused, ClaimRefusal::ClaimHeld { owner, .. } if owner == b.owner));
    assert_eq!(b.snapshot("r").await, before);
}

/// A wish on the condition that nobody has watched for some time: to the millisecond, and refused as superseded.
pub async fn only_where_nobody_watches(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let first = a.accept("r", "t").await;
    a.store.release(&first.token).await.expect("released");
    let wish =
        |time| Claim { detached_for: Some(Duration::from_millis(time)), ..b.wish("r", Purpose::Drive) };
    a.store.presence(&run_id("r"), &a.owner, PresenceUntil::For(Duration::from_secs(3))).await.expect("said");
    let before = a.snapshot("r").await;
    for time in [0, 1] {
        assert_eq!(refusal(b.store.claim(wish(time)).await), ClaimRefusal::Superseded);
    }
    assert_eq!(a.snapshot("r").await, before);
    world.pass(Duration::from_secs(4)).await;
    assert_eq!(refusal(b.store.claim(wish(1_001)).await), ClaimRefusal::Superseded);
    b.store.claim(wish(1_000)).await.expect("the bound counts as reached");
}
