//! A wish to stop is durable, sticky and never overlooked by an end.

use std::time::Duration;

use outlast_core::run::{CancelReason, Purpose, Status};

use crate::conformance::world::{Host, LEASE, World, abortion, completion, run_id};
use crate::{CancelOutcome, FinishError, PresenceUntil};

async fn cancel(host: &Host, run: &str, reason: CancelReason) -> CancelOutcome {
    host.store.request_cancel(&host.tenant, &run_id(run), reason, None).await.expect("answered")
}

/// A cancel on the condition that nobody has watched for so many milliseconds.
async fn cancel_unwatched(host: &Host, run: &str, least: u64) -> CancelOutcome {
    let least = Some(Duration::from_millis(least));
    host.store.request_cancel(&host.tenant, &run_id(run), CancelReason::Ttl, least).await.expect("answered")
}

/// The first wish is recorded with its time; later ones change nothing.
pub async fn the_first_wish_stays(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    assert!(matches!(cancel(&a, "none", CancelReason::User).await, CancelOutcome::NotFound));
    a.accept("r", "t").await;
    match cancel(&b, "r", CancelReason::Ttl).await {
        CancelOutcome::Recorded(run) => assert_eq!(*run, a.record("r").await),
        other => panic!("{other:?}"),
    }
    let wish = a.record("r").await.cancel_requested.expect("recorded");
    assert_eq!(wish.reason, CancelReason::Ttl);
    world.pass(Duration::from_secs(1)).await;
    let outcome = cancel(&a, "r", CancelReason::User).await;
    assert!(matches!(outcome, CancelOutcome::AlreadyRequested(run) if run.cancel_requested == Some(wish)));
    assert_eq!(a.record("r").await.cancel_requested, Some(wish));
}

/// A cancel for want of viewers is recorded only while nobody watches; a person's Stop whoever does.
pub async fn a_viewer_who_is_there_wins(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    a.accept("r", "t").await;
    let watch = PresenceUntil::For(Duration::from_secs(10));
    a.store.presence(&run_id("r"), &a.owner, watch).await.expect("written");
    let before = a.record("r").await;
    for least in [0, 1] {
        assert!(
            matches!(cancel_unwatched(&b, "r", least).await, CancelOutcome::Watched(run) if *run == before)
        );
    }
    assert_eq!(a.record("r").await, before, "nothing was written");
    a.store.presence(&run_id("r"), &a.owner, PresenceUntil::Left).await.expect("written");
    world.pass(Duration::from_secs(5)).await;
    assert!(matches!(cancel_unwatched(&b, "r", 5_001).await, CancelOutcome::Watched(_)), "1 ms too fresh");
    assert_eq!(a.record("r").await.cancel_requested, None);
    assert!(matches!(cancel_unwatched(&b, "r", 5_000).await, CancelOutcome::Recorded(_)));
    a.accept("s", "u").await;
    a.store.presence(&run_id("s"), &a.owner, watch).await.expect("written");
    assert!(matches!(cancel(&b, "s", CancelReason::User).await, CancelOutcome::Recorded(_)));
}

/// An end that does not take the recorded cancel into account is refused; one that does is written.
pub async fn an_end_must_know_of_it(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    cancel(&a, "r", CancelReason::User).await;
    let before = a.snapshot("r").await;
    for finish in [completion(&token, 1), abortion(&token, 1, CancelReason::Ttl)] {
        match a.store.finish(finish).await {
            Err(FinishError::Cancelled(wish)) => assert_eq!(wish.reason, CancelReason::User),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(a.snapshot("r").await, before);
    let finished = a.store.finish(abortion(&token, 1, CancelReason::User)).await.expect("ended").run;
    assert_eq!(finished.status, Status::Aborted);
    assert_eq!(finished.cancel_requested.expect("still on the record").reason, CancelReason::User);
}

/// Of a cancel and an end at once, one is first, and both callers are told the same.
pub async fn racing_the_end(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let mut cancelled = 0;
    for round in 0..40 {
        let run = format!("r{round}");
        let token = a.accept(&run, &run).await.token;
        let ending = {
            let (a, token) = (a.clone(), token.clone());
            tokio::spawn(async move { a.complete(&token, 1).await })
        };
        // The longer it waits, the more often the end is first; both orders are seen.
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        let outcome = cancel(if round % 2 == 0 { &a } else { &b }, &run, CancelReason::User).await;
        let ended = ending.await.expect("it ends");
        let record = b.record(&run).await;
        match (&outcome, &ended) {
            (CancelOutcome::Terminal(_), Ok(_)) => {
                assert_eq!((record.status, record.cancel_requested), (Status::Completed, None));
            }
            (CancelOutcome::Recorded(_), Err(FinishError::Cancelled(_))) => {
                cancelled += 1;
                assert_eq!(record.status, Status::Running);
                let aborted = a.store.finish(abortion(&token, 1, CancelReason::User)).await.expect("ended");
                assert_eq!(aborted.run.status, Status::Aborted);
            }
            other => panic!("two winners or none: {other:?}"),
        }
    }
    assert!(cancelled <= 40);
}

/// A cancelled run is claimed only to be ended.
pub async fn only_the_end_may_be_claimed(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    a.accept("r", "t").await;
    cancel(&b, "r", CancelReason::User).await;
    world.pass(LEASE).await;
    assert!(b.claim("r", Purpose::Drive).await.is_err());
    let claimed = b.claim("r", Purpose::End).await.expect("granted");
    assert_eq!(claimed.run.cancel_requested.expect("told").reason, CancelReason::User);
    b.store.finish(abortion(&claimed.token, 1, CancelReason::User)).await.expect("ended");
}

/// A cancel takes no claim away: what the agent still prints is stored until its end.
pub async fn the_driver_writes_on(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    cancel(&a, "r", CancelReason::User).await;
    a.append(&token, 1, &["last words"]).await.expect("written");
    assert_eq!(a.renew(&[&token]).await.len(), 1);
}
