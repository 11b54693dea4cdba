//! Bodies that are elsewhere.

use std::time::Duration;

use outlast_core::decide::RecordsRefusal;
use outlast_core::ledger::{Pointer, Record};
use outlast_core::transcript::Role;
use outlast_core::{Seq, Tenant};

use super::ledger::{checkpoint, head, records, turn};
use crate::conformance::world::{
    Host, World, all_at_once, append, completion, run_id, said, text_event, thread_id,
};
use crate::{
    Accept, AcceptError, AcquireLease, Append, AppendError, AppendRecords, Entropy, Finish, FinishError,
    LeaseOn, LeaseToken, NewEvent, NewMessage, NewRecord, Offloaded, RecordsError, SystemEntropy,
};

const HOUR: Duration = Duration::from_secs(3600);

async fn pointer(host: &Host, name: u8) -> Pointer {
    Pointer::new(&head(host, "t").await.session_id, &[name; 32], 1_000_000)
}

fn event(pointer: &Pointer) -> NewEvent {
    NewEvent { pointer: Some(pointer.clone()), ..text_event("what stands for it") }
}

fn message(ordinal: i64, pointer: &Pointer) -> NewMessage {
    let offloaded = Offloaded { pointer: pointer.clone(), sum: format!("sum of {}", pointer.key) };
    let message = said("m", Role::Tool, "what stands for it");
    NewMessage { offloaded: Some(offloaded), ..NewMessage::new(ordinal, message) }
}

async fn lease(host: &Host) -> LeaseToken {
    let on = LeaseOn::Session(head(host, "t").await.session_id);
    let request = AcquireLease { on, owner: host.owner.clone(), nonce: SystemEntropy.nonce(), lasts: HOUR };
    host.store.acquire_lease(&request).await.expect("granted").token
}

async fn barrier(host: &Host, lease: &LeaseToken) -> u64 {
    let record = NewRecord::new(format!("barrier/{}", lease.epoch), Record::Barrier { epoch: lease.epoch });
    let wanted = AppendRecords { lease: Some(lease.clone()), ..records(host, "t", vec![record]) };
    host.store.append_records(wanted).await.expect("added")[0].seq
}

/// Pointers of events, messages and records come back as they were given, and are listed once each.
pub async fn come_back_as_they_were(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    let (one, two) = (pointer(&a, 1).await, pointer(&a, 2).await);
    let write = Append {
        events: vec![event(&one), text_event("plain"), event(&two)],
        messages: vec![message(2, &one)],
        barrier: Some(0),
        ..append(&token, 1, &[])
    };
    a.store.append(write).await.expect("written");
    let log = a.log("r").await;
    let found: Vec<_> = log.iter().map(|event| event.pointer.clone()).collect();
    assert_eq!(found, [None, Some(one.clone()), None, Some(two.clone())]);
    assert!(log[1].json.contains("what stands for it"));
    let rows = async || a.store.run_messages(&a.tenant, &run_id("r")).await.expect("read");
    assert_eq!(rows().await[0].pointer, Some(one.clone()));
    let session = head(&a, "t").await.session_id;
    let all = async || a.store.pointers(&session).await.expect("read");
    assert_eq!(all().await, [one.clone(), two.clone()]);
    let before = rows().await;
    a.complete(&token, 4).await.expect("ended");
    assert_eq!(rows().await, before);
    let records = super::ledger::read(&a, &session).await;
    assert_eq!(records[1].pointer, Some(one.clone()));
    assert_eq!(records[1].sum, format!("sum of {}", one.key), "of the body, not of what stands for it");
    assert_eq!(all().await, [one, two]);
    let other = outlast_core::ledger::SessionId::of("x", &Tenant::default(), &thread_id("t"));
    assert_eq!(a.store.pointers(&other).await.expect("read"), []);
}

/// Whoever has put a body before the latest barrier is told so, and nothing is written.
pub async fn a_barrier_moves(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    turn(&a, "r0", "t").await;
    let token = a.accept("r", "t").await.token;
    let body = pointer(&a, 1).await;
    let before = a.snapshot("r").await;
    let seen = barrier(&b, &lease(&b).await).await;
    let tip = head(&a, "t").await.tip;
    assert_eq!((seen, head(&a, "t").await.barrier), (tip, tip));
    let write = Append {
        events: vec![event(&body)],
        messages: vec![message(2, &body)],
        barrier: Some(0),
        ..append(&token, 1, &[])
    };
    let refused = a.store.append(write.clone()).await;
    let Err(AppendError::Bodies(RecordsRefusal::BarrierMoved { barrier })) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(barrier, seen);
    let ends = completion(&token, 1);
    let finish = |barrier| Finish {
        append: Append { messages: vec![message(2, &body)], barrier, ..ends.append.clone() },
        ..ends.clone()
    };
    let refused = a.store.finish(finish(Some(0))).await;
    assert!(matches!(refused, Err(FinishError::Bodies(RecordsRefusal::BarrierMoved { .. }))), "{refused:?}");
    assert_eq!(a.snapshot("r").await, before);
    let record = NewRecord {
        offloaded: Some(Offloaded { pointer: body.clone(), sum: "s".to_owned() }),
        ..checkpoint("c", 1)
    };
    let wanted = |barrier| AppendRecords { barrier, ..records(&a, "t", vec![record.clone()]) };
    for before in [Some(0), None] {
        let refused = a.store.append_records(wanted(before)).await;
        assert!(
            matches!(refused, Err(RecordsError::Refused(RecordsRefusal::BarrierMoved { .. }))),
            "{before:?}: {refused:?}"
        );
    }
    assert_eq!(head(&a, "t").await.tip, tip);
    a.store.append(Append { barrier: Some(seen), ..write }).await.expect("written");
    a.append(&token, 2, &["without a body"]).await.expect("no barrier matters");
    a.store.append_records(wanted(Some(seen))).await.expect("added");
    let finish = finish(Some(seen));
    let append = Append { expected_tail: Seq(3), ..finish.append };
    a.store.finish(Finish { append, ..finish }).await.expect("ended");
    let request = |barrier| Accept { messages: vec![message(-1, &body)], barrier, ..a.request("r2", "t") };
    let refused = a.store.accept(request(Some(0))).await;
    assert!(matches!(refused, Err(AcceptError::Bodies(RecordsRefusal::BarrierMoved { .. }))), "{refused:?}");
    a.accept_with(request(Some(seen))).await;
}

/// Only that to which nothing points is condemned; then nothing points to it, whoever holds what since.
pub async fn condemned_for_ever(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let token = a.accept("r", "t").await.token;
    let (event_body, message_body, record_body, orphan) =
        (pointer(&a, 1).await, pointer(&a, 2).await, pointer(&a, 3).await, pointer(&a, 4).await);
    let write = Append {
        events: vec![event(&event_body)],
        messages: vec![message(2, &message_body)],
        barrier: Some(0),
        ..append(&token, 1, &[])
    };
    a.store.append(write).await.expect("written");
    let record = NewRecord {
        offloaded: Some(Offloaded { pointer: record_body.clone(), sum: "s".to_owned() }),
        ..checkpoint("c", 1)
    };
    let wanted = AppendRecords { barrier: Some(0), ..records(&a, "t", vec![record]) };
    a.store.append_records(wanted).await.expect("added");
    let keys: Vec<String> =
        [&event_body, &message_body, &record_body, &orphan].map(|pointer| pointer.key.clone()).into();
    let held = lease(&b).await;
    let only = vec![orphan.key.clone()];
    assert_eq!(b.store.condemn(&held, &keys).await.expect("condemned"), only);
    assert_eq!(b.store.condemn(&held, &[]).await.expect("answered"), only);
    b.store.release_lease(&held, None).await.expect("released");
    let refused = b.store.condemn(&held, &keys).await;
    assert!(matches!(refused, Err(RecordsError::Refused(RecordsRefusal::LeaseLost { .. }))), "{refused:?}");
    let write = Append {
        events: vec![event(&message_body), event(&orphan)],
        barrier: Some(0),
        ..append(&token, 2, &[])
    };
    let refused = a.store.append(write).await;
    let Err(AppendError::Bodies(RecordsRefusal::Condemned { key })) = refused else { panic!("{refused:?}") };
    assert_eq!(key, orphan.key);
    assert_eq!(a.log("r").await.len(), 2);
}

/// Of a body, either something points to it, or it is condemned.
pub async fn racing_to_point_and_to_condemn(world: World) {
    let a = world.host("a").await;
    turn(&a, "r", "t").await;
    let session = head(&a, "t").await.session_id;
    for round in 0..8u8 {
        let held = lease(&a).await;
        let bodies: Vec<Pointer> = (0..4).map(|n| Pointer::new(&session, &[round * 8 + n; 32], 1)).collect();
        let keys: Vec<String> = bodies.iter().map(|pointer| pointer.key.clone()).collect();
        let mut tasks: Vec<std::pin::Pin<Box<dyn Future<Output = bool> + Send>>> = Vec::new();
        for (n, body) in bodies.iter().cloned().enumerate() {
            let a = a.clone();
            tasks.push(Box::pin(async move {
                let record = NewRecord {
                    offloaded: Some(Offloaded { pointer: body, sum: format!("{round}{n}") }),
                    ..checkpoint(&format!("c{round}-{n}"), 1)
                };
                let wanted = AppendRecords { barrier: Some(0), ..records(&a, "t", vec![record]) };
                a.store.append_records(wanted).await.is_ok()
            }));
        }
        let (host, token, condemned) = (a.clone(), held.clone(), keys.clone());
        tasks.push(Box::pin(async move { host.store.condemn(&token, &condemned).await.is_ok() }));
        let done = all_at_once(tasks).await;
        assert!(done[4], "the lease is held");
        let pointed = a.store.pointers(&session).await.expect("read");
        let condemned = a.store.condemn(&held, &[]).await.expect("answered");
        for (n, body) in bodies.iter().enumerate() {
            assert_eq!(pointed.contains(body), done[n], "{n}");
            assert_eq!(condemned.contains(&body.key), !done[n], "{n}");
        }
        a.store.release_lease(&held, None).await.expect("released");
    }
}

/// Events that have aged out point to nothing any more; messages do.
pub async fn of_events_that_aged_out(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    let (one, two) = (pointer(&a, 1).await, pointer(&a, 2).await);
    let write = Append {
        events: vec![event(&one)],
        messages: vec![message(2, &two)],
        barrier: Some(0),
        ..append(&token, 1, &[])
    };
    a.store.append(write).await.expect("written");
    a.complete(&token, 2).await.expect("ended");
    world.pass(HOUR).await;
    a.store.expire_events(HOUR, 500).await.expect("swept");
    let session = head(&a, "t").await.session_id;
    assert_eq!(a.store.pointers(&session).await.expect("read"), [two]);
}
