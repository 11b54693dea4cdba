//! Leases on sessions, and pins.

use std::time::Duration;

use outlast_core::decide::{LeaseRefusal, RecordsRefusal};
use outlast_core::ledger::{Record, SessionId};

use super::ledger::{checkpoint, head, records, turn};
use crate::conformance::world::{Host, World, thread_id};
use crate::{
    AcquireLease, AppendRecords, Entropy, LeaseError, LeaseGranted, LeaseOn, NewRecord, RecordsError,
    SystemEntropy,
};

const LASTS: Duration = Duration::from_secs(30);

fn wish(host: &Host, on: &LeaseOn) -> AcquireLease {
    AcquireLease { on: on.clone(), owner: host.owner.clone(), nonce: SystemEntropy.nonce(), lasts: LASTS }
}

async fn acquire(host: &Host, on: &LeaseOn) -> Result<LeaseGranted, LeaseError> {
    host.store.acquire_lease(&wish(host, on)).await
}

async fn on_session(host: &Host) -> LeaseOn {
    turn(host, "r", "t").await;
    LeaseOn::Session(head(host, "t").await.session_id)
}

/// One holder until it gives the lease back or its time is up, to the millisecond; every grant has an epoch of its own.
pub async fn one_holder_at_a_time(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let on = on_session(&a).await;
    for on in [on, LeaseOn::Workspaces] {
        let request = wish(&a, &on);
        let first = a.store.acquire_lease(&request).await.expect("granted");
        assert_eq!((first.token.epoch, first.note), (1, None));
        assert_eq!(a.store.acquire_lease(&request).await.expect("the same wish"), first);
        let refused = acquire(&b, &on).await;
        let Err(LeaseError::Refused(LeaseRefusal::Held { owner, epoch, remaining, .. })) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!((owner, epoch, remaining), (a.owner.clone(), 1, 30_000));
        assert!(acquire(&a, &on).await.is_err(), "another wish of the same owner is another's");
        a.store.release_lease(&first.token, Some(7)).await.expect("released");
        let second = acquire(&b, &on).await.expect("granted");
        assert_eq!((second.token.epoch, second.note.map(|note| note.0)), (2, Some(7)));
        world.pass(LASTS - Duration::from_millis(1)).await;
        assert!(acquire(&a, &on).await.is_err());
        assert!(b.store.renew_lease(&second.token, LASTS).await.expect("answered"));
        world.pass(LASTS - Duration::from_millis(1)).await;
        assert!(acquire(&a, &on).await.is_err());
        world.pass(Duration::from_millis(1)).await;
        let third = acquire(&a, &on).await.expect("granted");
        assert_eq!(third.token.epoch, 3);
        a.store.release_lease(&third.token, None).await.expect("released");
        assert_eq!(acquire(&b, &on).await.expect("granted").note.map(|note| note.0), Some(7), "a note stays");
    }
    let unknown = LeaseOn::Session(SessionId::of("x", &a.tenant, &thread_id("none")));
    let refused = acquire(&a, &unknown).await;
    assert!(matches!(refused, Err(LeaseError::Refused(LeaseRefusal::SessionNotFound(_)))), "{refused:?}");
}

/// Whoever has lost a lease renews nothing, gives nothing back, and adds no record under it.
pub async fn lost_ones_do_nothing(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let on = on_session(&a).await;
    let lost = acquire(&a, &on).await.expect("granted").token;
    world.pass(LASTS).await;
    assert!(
        !a.store.renew_lease(&lost, LASTS).await.expect("answered"),
        "not even when nobody else holds it"
    );
    let held = acquire(&b, &on).await.expect("granted").token;
    assert!(!a.store.renew_lease(&lost, LASTS).await.expect("answered"));
    a.store.release_lease(&lost, Some(9)).await.expect("answered");
    assert_eq!(head(&a, "t").await.lease.map(|lease| lease.owner), Some(b.owner.clone()));
    let barrier = |lease| AppendRecords {
        lease: Some(lease),
        ..records(&a, "t", vec![NewRecord::new("b", Record::Barrier { epoch: 1 })])
    };
    let refused = a.store.append_records(barrier(lost)).await;
    let Err(RecordsError::Refused(RecordsRefusal::LeaseLost { epoch, .. })) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((epoch, head(&a, "t").await.barrier), (1, 0));
    b.store.append_records(barrier(held)).await.expect("added");
}

/// A store that is closed gives back what its process holds.
pub async fn given_back_at_the_end(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let on = on_session(&b).await;
    acquire(&a, &on).await.expect("granted");
    let of_b = acquire(&b, &LeaseOn::Workspaces).await.expect("granted").token;
    a.store.close().await;
    acquire(&b, &on).await.expect("granted");
    assert!(b.store.renew_lease(&of_b, LASTS).await.expect("answered"), "and nothing else");
}

/// A pin holds from when it was set until it was not set again in time, or was let go of; one that has run out is gone.
pub async fn pins_hold_until_they_run_out(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    turn(&a, "r", "t").await;
    let (pin, other) = (SystemEntropy.nonce(), SystemEntropy.nonce());
    let since = a.store.pin(&pin, &a.owner, LASTS).await.expect("answered").expect("pinned");
    world.pass(LASTS - Duration::from_millis(1)).await;
    assert_eq!(a.store.pin(&pin, &a.owner, LASTS).await.expect("answered"), Some(since));
    let later = b.store.pin(&other, &b.owner, LASTS).await.expect("answered").expect("pinned");
    assert!(later > since);
    let held = b.store.pins().await.expect("answered");
    let mut found: Vec<_> = held.iter().map(|held| (held.since, held.pin.clone())).collect();
    found.sort_by_key(|(since, _)| *since);
    assert_eq!(found, [(since, pin.clone()), (later, other.clone())]);
    let wanted = |pin| AppendRecords { pin: Some(pin), ..records(&a, "t", vec![checkpoint("c", 1)]) };
    a.store.append_records(wanted(pin.clone())).await.expect("added");
    let held = b.store.pins().await.expect("answered");
    assert!(held.len() == 1 && held[0].pin == other, "the first is let go of: {held:?}");
    a.store.append_records(wanted(pin)).await.expect("the same again is answered");
    world.pass(LASTS).await;
    assert_eq!(b.store.pins().await.expect("answered"), []);
    assert_eq!(b.store.pin(&other, &b.owner, LASTS).await.expect("answered"), None);
    let late = AppendRecords { pin: Some(other.clone()), ..records(&a, "t", vec![checkpoint("d", 1)]) };
    let refused = a.store.append_records(late).await;
    assert!(matches!(refused, Err(RecordsError::Refused(RecordsRefusal::PinLost))), "{refused:?}");
    b.store.unpin(&other).await.expect("let go of");
    b.store.unpin(&SystemEntropy.nonce()).await.expect("one that never was");
}
