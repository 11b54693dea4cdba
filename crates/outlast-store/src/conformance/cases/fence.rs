//! One writer: whoever does not hold the claim changes nothing, whenever the claim was lost.

use outlast_core::decide::Fenced;
use outlast_core::event::Origin;
use outlast_core::run::{ClaimToken, Purpose, Status};
use outlast_core::{Nonce, Seq};

use crate::conformance::HeldOpen;
use crate::conformance::world::{
    Host, LEASE, World, append, completion, instance, instance_id, run_id, text_event,
};
use crate::{AppendError, Claimed, FinishError, InstanceError};

/// Tries every fenced write with the token; each must be refused in the same way.
async fn all_refused(host: &Host, token: &ClaimToken, tail: u64, expected: &Fenced) {
    let store = &host.store;
    match store.append(append(token, tail, &["stale"])).await {
        Err(AppendError::Fenced(fenced)) => assert_eq!(fenced, *expected),
        other => panic!("append: {other:?}"),
    }
    match store.launched(token, Seq(tail), vec![text_event("stale")]).await {
        Err(AppendError::Fenced(fenced)) => assert_eq!(fenced, *expected),
        other => panic!("launched: {other:?}"),
    }
    match store.finish(completion(token, tail)).await {
        Err(FinishError::Fenced(fenced)) => assert_eq!(fenced, *expected),
        other => panic!("finish: {other:?}"),
    }
    match store.create_instance(token, &instance("stale", "key", None, 1)).await {
        Err(InstanceError::Fenced(fenced)) => assert_eq!(fenced, *expected),
        other => panic!("create_instance: {other:?}"),
    }
    match store.use_instance(token, &instance_id("shared")).await {
        Err(InstanceError::Fenced(fenced)) => assert_eq!(fenced, *expected),
        other => panic!("use_instance: {other:?}"),
    }
    assert_eq!(store.instance(&instance_id("stale")).await.expect("answered"), None);
}

/// A token of an earlier epoch, or with another nonce, writes nothing anywhere.
pub async fn a_stale_token_changes_nothing(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let neighbour = a.accept("neighbour", "t2").await;
    a.store.create_instance(&neighbour.token, &instance("shared", "key", None, 1)).await.expect("made");
    let stale = a.accept("r", "t").await.token;
    world.pass(LEASE).await;
    let current = b.claim("r", Purpose::Drive).await.expect("granted").token;
    b.append(&current, 1, &["one"]).await.expect("written");
    let before = b.snapshot("r").await;

    let forged = ClaimToken { nonce: Nonce::from_stored("00".repeat(16)), ..current.clone() };
    for (token, held_epoch) in [(&stale, 1), (&forged, 2)] {
        let lost = Fenced::ClaimLost { run_id: run_id("r"), held_epoch, current_epoch: 2 };
        all_refused(&a, token, 2, &lost).await;
    }
    assert_eq!(b.snapshot("r").await, before);
    b.append(&current, 2, &["two"]).await.expect("the claim is as good as before");
}

/// A lease that ran out while nobody claimed is no reason to refuse: there is still one writer.
pub async fn a_lapsed_lease_still_writes(world: World) {
    let a = world.host("a").await;
    let claimed = a.accept("r", "t").await;
    world.pass(LEASE * 10).await;
    a.append(&claimed.token, 1, &["slow"]).await.expect("written");
    a.complete(&claimed.token, 2).await.expect("ended");
}

/// Whatever is in flight when a claim commits: after it, not one event of the old driver lands.
pub async fn appends_racing_a_claim(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    for round in 0..20 {
        let run = format!("r{round}");
        let token = a.accept(&run, &run).await.token;
        world.pass(LEASE).await;
        // Several at once, each going on from the tail that it is told.
        let writers: Vec<_> = (0..4)
            .map(|_| {
                let (a, token) = (a.clone(), token.clone());
                tokio::spawn(async move {
                    let mut tail = 1;
                    loop {
                        match a.append(&token, tail, &["old", "old"]).await {
                            Ok(appended) => tail = appended.tail.0,
                            Err(AppendError::TailMoved { actual, .. }) => tail = actual.0,
                            Err(AppendError::Fenced(Fenced::ClaimLost { .. })) => return,
                            Err(other) => panic!("{other:?}"),
                        }
                    }
                })
            })
            .collect();
        while a.record(&run).await.tail < 20 {
            tokio::task::yield_now().await;
        }
        let claimed = b.claim(&run, Purpose::Drive).await.expect("granted");
        let tail = claimed.run.tail;
        b.append(&claimed.token, tail, &["new"]).await.expect("nothing came in between");
        for writer in writers {
            writer.await.expect("it stops");
        }
        let log = b.log(&run).await;
        assert_eq!(log.len() as u64, tail + 1);
        assert!(log[tail as usize].json.contains("new"));
        assert!(
            log.iter().zip(1..).all(|(event, seq)| event.seq == Seq(seq) && event.origin == Origin::Host)
        );
    }
}

/// The claim is made first, while the append waits for the same row: not one event of the old driver lands, and it is told
/// who came after it. Where no transaction can be held open, whichever comes first.
pub async fn an_append_that_waits_while_a_claim_is_made(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let token = a.accept("r", "t").await.token;
    world.pass(LEASE).await;
    let held = world.backend.hold_open(&run_id("r")).await;
    let claim = tokio::spawn({
        let b = b.clone();
        async move { b.claim("r", Purpose::Drive).await }
    });
    until_waiting(held.as_deref(), 1).await;
    let append = tokio::spawn({
        let (a, token) = (a.clone(), token.clone());
        async move { a.append(&token, 1, &["old"]).await }
    });
    until_waiting(held.as_deref(), 2).await;
    let in_order = held.is_some();
    if let Some(held) = held {
        held.let_go().await;
    }
    let claimed = claim.await.expect("it ends").expect("granted");
    let appended = append.await.expect("it ends");
    one_saw_the_other(&a, &token, &b, &claimed, appended.is_ok()).await;
    if in_order {
        let lost = Fenced::ClaimLost { run_id: run_id("r"), held_epoch: 1, current_epoch: 2 };
        assert!(matches!(&appended, Err(AppendError::Fenced(fenced)) if *fenced == lost), "{appended:?}");
    }
}

/// The append is made first, while the claim waits for the same row: its event is there, and the new driver knows of it.
/// Where no transaction can be held open, whichever comes first.
pub async fn a_claim_that_waits_while_an_append_is_made(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let token = a.accept("r", "t").await.token;
    world.pass(LEASE).await;
    let held = world.backend.hold_open(&run_id("r")).await;
    let append = tokio::spawn({
        let (a, token) = (a.clone(), token.clone());
        async move { a.append(&token, 1, &["old"]).await }
    });
    until_waiting(held.as_deref(), 1).await;
    let claim = tokio::spawn({
        let b = b.clone();
        async move { b.claim("r", Purpose::Drive).await }
    });
    until_waiting(held.as_deref(), 2).await;
    let in_order = held.is_some();
    if let Some(held) = held {
        held.let_go().await;
    }
    let appended = append.await.expect("it ends");
    let claimed = claim.await.expect("it ends").expect("granted");
    one_saw_the_other(&a, &token, &b, &claimed, appended.is_ok()).await;
    if in_order {
        assert_eq!(appended.expect("written").tail, Seq(2));
    }
}

async fn until_waiting(held: Option<&dyn HeldOpen>, n: usize) {
    if let Some(held) = held {
        while held.waiting().await < n {
            tokio::task::yield_now().await;
        }
    }
}

/// Of an append and a claim at once: the claim's grant tells of the event exactly where it was written, and from then on the
/// old driver writes nothing.
async fn one_saw_the_other(a: &Host, stale: &ClaimToken, b: &Host, claimed: &Claimed, appended: bool) {
    let tail = if appended { 2 } else { 1 };
    assert_eq!((claimed.token.epoch, claimed.run.tail), (2, tail));
    let lost = Fenced::ClaimLost { run_id: run_id("r"), held_epoch: 1, current_epoch: 2 };
    all_refused(a, stale, tail, &lost).await;
    b.append(&claimed.token, tail, &["new"]).await.expect("nothing came in between");
    let log = b.log("r").await;
    assert_eq!(log.len() as u64, tail + 1);
    assert_eq!(log.iter().filter(|event| event.json.contains("old")).count() as u64, tail - 1);
}

/// A write to a run that does not exist says so.
pub async fn an_unknown_run(world: World) {
    let a = world.host("a").await;
    let token = ClaimToken { run_id: run_id("none"), ..a.accept("r", "t").await.token };
    all_refused(&a, &token, 0, &Fenced::RunNotFound(run_id("none"))).await;
    a.store.release(&token).await.expect("without effect");
}

/// After the end its last driver is told that the run has ended, and writes nothing.
pub async fn after_the_end(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    a.complete(&token, 1).await.expect("ended");
    let before = a.snapshot("r").await;
    all_refused(&a, &token, 3, &Fenced::TerminalRun(Status::Completed)).await;
    a.store.release(&token).await.expect("without effect");
    assert_eq!(a.snapshot("r").await, before);
}
