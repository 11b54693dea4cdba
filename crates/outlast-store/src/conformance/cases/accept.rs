//! Of any number of requests for one run, one thread or one workspace, one is accepted.

use std::time::Duration;

use outlast_core::decide::AcceptRefusal;
use outlast_core::event::Origin;
use outlast_core::run::{Phase, Purpose, Status};
use outlast_core::transcript::Role;
use outlast_core::{RunId, Seq, Tenant};

use crate::NewMessage;
use crate::conformance::world::{
    Host, LEASE, World, accepted_event, all_at_once, in_workspace, run_id, said, spec, text_event, thread_id,
};
use crate::{Accept, AcceptError, Accepted};

fn refusal(answer: Result<Accepted, AcceptError>) -> AcceptRefusal {
    match answer {
        Err(AcceptError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

/// The record, the claim of epoch 1, the first events and the turn's messages are there at once.
pub async fn records_the_run(world: World) {
    let host = world.host("a").await;
    let messages = vec![said("u1", Role::User, "Hi"), said("u2", Role::User, "there")];
    let events = vec![accepted_event(), text_event("\u{1F980}").chunk];
    let request = Accept {
        messages: NewMessage::input(messages.clone()),
        events: events.clone(),
        ..host.request("r", "t")
    };
    let claimed = host.accept_with(request).await;

    assert_eq!((claimed.token.epoch, &claimed.token.owner), (1, &host.owner));
    let record = host.record("r").await;
    assert_eq!(claimed.run, record);
    assert_eq!((record.status, record.phase), (Status::Running, Phase::Accepted));
    assert_eq!((record.driver_epoch, record.tail, record.sealed), (1, 2, false));
    assert_eq!(record.detached_ttl, Some(86_400_000));
    assert_eq!(record.spec, spec());
    assert_eq!((record.agent.as_str(), record.model.as_deref()), ("demo", Some("m")));
    assert_eq!(record.exit_secret.reveal().len(), 32);
    let driver = record.driver.expect("its producer drives it");
    assert_eq!((driver.owner, u128::from(driver.lease_remaining)), (host.owner.clone(), LEASE.as_millis()));

    let log = host.log("r").await;
    let stored: Vec<_> = log.iter().map(|event| (event.seq, event.origin, event.json.as_str())).collect();
    assert_eq!(
        stored,
        [(Seq(1), Origin::Host, events[0].json.as_str()), (Seq(2), Origin::Host, events[1].json.as_str())]
    );
    let rows = host.store.run_messages(&host.tenant, &run_id("r")).await.expect("messages");
    let rows: Vec<_> = rows.into_iter().map(|row| (row.ordinal, row.message)).collect();
    assert_eq!(rows, [(-2, messages[0].clone()), (-1, messages[1].clone())]);

    let other = host.accept("r2", "t2").await;
    assert_ne!(other.run.exit_secret, record.exit_secret);
    assert_ne!(other.token.nonce, claimed.token.nonce);
}

/// The same request again is answered with its run, live or ended, and writes nothing.
pub async fn the_same_request_again(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let claimed = a.accept("r", "t").await;
    let before = a.snapshot("r").await;
    let again =
        Accept { messages: NewMessage::input(vec![said("u", Role::User, "Hi")]), ..b.request("r", "t") };
    let elsewhere = Accept { thread_chosen: false, ..b.request("r", "minted") };
    for request in [again.clone(), elsewhere] {
        match b.store.accept(request).await.expect("answered") {
            Accepted::Existing(run) => assert_eq!(run.run_id, run_id("r")),
            Accepted::New(_) => panic!("accepted twice"),
        }
    }
    assert_eq!(a.snapshot("r").await, before);
    a.complete(&claimed.token, 1).await.expect("ended");
    let existing = b.store.accept(again).await.expect("answered");
    assert!(matches!(existing, Accepted::Existing(run) if run.status == Status::Completed));
}

/// The very same attempt again is given its claim again, with a lease from now, as long as the claim is current.
pub async fn the_same_attempt_again(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let request = a.request("r", "t");
    let first = a.accept_with(request.clone()).await;
    world.pass(LEASE - Duration::from_millis(1)).await;
    let again = a.accept_with(request.clone()).await;
    assert_eq!(again.token, first.token);
    assert_eq!((a.log("r").await.len(), again.run.driver_epoch), (1, 1));
    world.pass(LEASE - Duration::from_millis(1)).await;
    a.append(&again.token, 1, &["still its writer"]).await.expect("written");
    assert!(b.claim("r", Purpose::Drive).await.is_err(), "the lease began anew");
    world.pass(LEASE).await;
    b.claim("r", Purpose::Drive).await.expect("granted");
    let existing = a.store.accept(request).await.expect("answered");
    assert!(matches!(existing, Accepted::Existing(run) if run.driver_epoch == 2));
}

/// An id is taken for ever by the first request, within and across tenants.
pub async fn another_request_under_the_id(world: World) {
    let host = world.host("a").await;
    let claimed = host.accept("r", "t").await;
    let other_tenant = Host { tenant: Tenant("other".to_owned()), ..host.clone() };
    let requests = || {
        [
            host.request("r", "another thread"),
            Accept { digest: "another".to_owned(), ..host.request("r", "t") },
            other_tenant.request("r", "t"),
        ]
    };
    let before = host.snapshot("r").await;
    for request in requests() {
        let refused = refusal(host.store.accept(request).await);
        assert!(matches!(refused, AcceptRefusal::RunIdConflict { run_id, .. } if run_id.as_str() == "r"));
    }
    assert_eq!(host.snapshot("r").await, before);
    host.complete(&claimed.token, 1).await.expect("ended");
    for request in requests() {
        let refused = refusal(host.store.accept(request).await);
        assert!(matches!(refused, AcceptRefusal::RunIdConflict { .. }));
    }
}

/// A thread admits one live run, named to whoever comes second.
pub async fn a_live_thread_is_busy(world: World) {
    let host = world.host("a").await;
    let claimed = host.accept("r1", "t").await;
    let refused = refusal(host.store.accept(host.request("r2", "t")).await);
    assert!(matches!(refused, AcceptRefusal::ThreadBusy { run_id, .. } if run_id.as_str() == "r1"));
    assert_eq!(host.store.run(&host.tenant, &run_id("r2")).await.expect("answered"), None);
    host.complete(&claimed.token, 1).await.expect("ended");
    host.accept("r2", "t").await;
}

/// A lent workspace admits one live run unless both runs share it.
pub async fn a_lent_workspace_is_busy(world: World) {
    let host = world.host("a").await;
    let request = |run: &str, path: &str, shared| in_workspace(host.request(run, run), path, shared);
    let busy = |answer: Result<Accepted, AcceptError>, by: &str| {
        let refused = refusal(answer);
        assert!(
            matches!(&refused, AcceptRefusal::WorkspaceBusy { run_id, .. } if run_id.as_str() == by),
            "{refused:?}"
        );
    };
    let alone = host.accept_with(request("alone", "/w", false)).await;
    busy(host.store.accept(request("x", "/w", false)).await, "alone");
    busy(host.store.accept(request("x", "/w", true)).await, "alone");
    host.accept_with(request("elsewhere", "/w2", false)).await;
    host.complete(&alone.token, 1).await.expect("ended");
    host.accept_with(request("shared", "/w", true)).await;
    busy(host.store.accept(request("x", "/w", false)).await, "shared");
    host.accept_with(request("shared too", "/w", true)).await;
}

/// Of many at once under one id, one gets a new run and the others see it.
pub async fn racing_with_one_id(world: World) {
    let hosts = [world.host("a").await, world.host("b").await];
    for round in 0..5 {
        let run = format!("r{round}");
        let answers = all_at_once((0..16).map(|n| {
            let host = hosts[n % 2].clone();
            let request = host.request(&run, &run);
            async move { host.store.accept(request).await }
        }))
        .await;
        let new = answers.iter().filter(|answer| matches!(answer, Ok(Accepted::New(_)))).count();
        let existing = answers.iter().filter(|answer| matches!(answer, Ok(Accepted::Existing(_)))).count();
        assert_eq!((new, existing), (1, 15), "{answers:?}");
        assert_eq!(hosts[0].log(&run).await.len(), 1);
    }
}

/// The winner of a race, and whom the losers were told of.
async fn race(hosts: &[Host; 2], requests: Vec<Accept>) -> (RunId, Vec<AcceptRefusal>) {
    let answers = all_at_once(requests.into_iter().enumerate().map(|(n, request)| {
        let host = hosts[n % 2].clone();
        async move { host.store.accept(request).await }
    }))
    .await;
    let mut won = Vec::new();
    let mut lost = Vec::new();
    for answer in answers {
        match answer {
            Ok(Accepted::New(claimed)) => won.push(claimed.token.run_id),
            Err(AcceptError::Refused(refusal)) => lost.push(refusal),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(won.len(), 1, "{won:?}");
    (won.remove(0), lost)
}

/// Of many runs at once on one thread, one is accepted and the others are told which.
pub async fn racing_on_one_thread(world: World) {
    let hosts = [world.host("a").await, world.host("b").await];
    let requests = (0..16).map(|n| hosts[n % 2].request(&format!("r{n}"), "t")).collect();
    let (winner, lost) = race(&hosts, requests).await;
    assert_eq!(lost.len(), 15);
    for refusal in lost {
        assert!(matches!(refusal, AcceptRefusal::ThreadBusy { run_id, .. } if run_id == winner));
    }
    let active = hosts[1].store.find_active_run(&hosts[1].tenant, &thread_id("t")).await;
    assert_eq!(active.expect("answered").expect("there is one").run_id, winner);
}

/// Of many runs at once in one workspace, one is accepted and the others are told which.
pub async fn racing_in_one_workspace(world: World) {
    let hosts = [world.host("a").await, world.host("b").await];
    let requests = (0..16)
        .map(|n| in_workspace(hosts[n % 2].request(&format!("r{n}"), &format!("t{n}")), "/w", false))
        .collect();
    let (winner, lost) = race(&hosts, requests).await;
    assert_eq!(lost.len(), 15);
    for refusal in lost {
        assert!(matches!(refusal, AcceptRefusal::WorkspaceBusy { run_id, .. } if run_id == winner));
    }
    assert!(hosts[0].claim(winner.as_str(), Purpose::Drive).await.is_err(), "its producer holds the claim");
}
