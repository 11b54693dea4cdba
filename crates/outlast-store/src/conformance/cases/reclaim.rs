//! The end of instances: after that of their runs, once, and tried until it is so.

use std::time::Duration;

use outlast_core::decide::{ReclaimRefusal, reclaim_retry};
use outlast_core::run::{CancelReason, EndReason};

use crate::InstanceState::{Destroying, Gone, Live};
use crate::conformance::world::{Host, LEASE, World, abortion, all_at_once, instance, instance_id};
use crate::{Finish, Instance, ListInstances, ReclaimEnd, ReclaimError};

const fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A run that ended normally, with its instance, which is kept for so many milliseconds.
async fn ended(host: &Host, id: &str, keep_alive: Option<u64>) {
    let token = host.accept(id, id).await.token;
    let wanted = Instance { keep_alive, ..instance(id, id, Some("here"), 1) };
    host.store.create_instance(&token, &wanted).await.expect("made");
    host.store.instance_created(&instance_id(id)).await.expect("made");
    host.complete(&token, 1).await.expect("ended");
}

async fn due(host: &Host, machine: Option<&str>) -> Vec<String> {
    let query = ListInstances { due: true, machine: machine.map(str::to_owned), limit: 10, after: None };
    let found = host.store.list_instances(&query).await.expect("listed");
    found.into_iter().map(|instance| instance.instance_id.as_str().to_owned()).collect()
}

async fn begin(host: &Host, id: &str) -> Result<Instance, ReclaimRefusal> {
    match host.store.begin_reclaim(&host.reclaim(id, false)).await {
        Ok(begun) => Ok(begun),
        Err(ReclaimError::Refused(refusal)) => Err(refusal),
        Err(other) => panic!("{other:?}"),
    }
}

async fn fail(host: &Host, id: &str, error: &str) {
    let end = ReclaimEnd::Failed { error: error.to_owned() };
    host.store.end_reclaim(&instance_id(id), &host.owner, &end).await.expect("written");
}

async fn there(host: &Host, id: &str) -> Instance {
    host.store.instance(&instance_id(id)).await.expect("answered").expect("there")
}

/// The end of the last run says when its instance is due, to the millisecond; not before, and never without a lifecycle.
pub async fn the_end_of_a_run_says_when(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    ended(&a, "at-once", Some(0)).await;
    ended(&a, "later", Some(1_000)).await;
    ended(&a, "kept", None).await;
    assert_eq!(due(&b, None).await, ["at-once"]);
    assert!(matches!(begin(&b, "later").await, Err(ReclaimRefusal::Kept(Some(1..=1_000)))));
    assert_eq!(begin(&b, "kept").await, Err(ReclaimRefusal::Kept(None)));
    world.pass(millis(999)).await;
    assert!(matches!(begin(&b, "later").await, Err(ReclaimRefusal::Kept(Some(_)))));
    world.pass(millis(1)).await;
    assert_eq!(due(&b, None).await, ["at-once", "later"]);
    assert_eq!(due(&b, Some("here")).await, ["at-once", "later"]);
    assert_eq!(due(&b, Some("there")).await, [""; 0]);
    assert_eq!(begin(&b, "later").await.expect("begun").state, Destroying);
    assert_eq!(there(&a, "kept").await.reclaim, None);
    assert_eq!(there(&a, "kept").await.state, Live);
}

/// A kill that could not be verified makes the instance due at once, whatever its lifecycle says.
pub async fn an_unverified_kill_is_due_at_once(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    let wanted = Instance { keep_alive: None, ..instance("i", "key", None, 1) };
    a.store.create_instance(&token, &wanted).await.expect("made");
    a.stop("r").await;
    let finish = abortion(&token, 1, CancelReason::User);
    let mut verdict = finish.verdict.clone();
    verdict.reason = EndReason::CancelledUnverified;
    a.store.finish(Finish { verdict, ..finish }).await.expect("ended");
    assert_eq!(due(&a, None).await, ["i"]);
}

/// Whoever binds a run to it takes the end back; it is due anew after that run's end.
pub async fn another_turn_takes_it_back(world: World) {
    let a = world.host("a").await;
    ended(&a, "i", Some(1_000)).await;
    world.pass(millis(900)).await;
    let token = a.accept("next", "next").await.token;
    a.store.use_instance(&token, &instance_id("i")).await.expect("bound");
    assert_eq!(there(&a, "i").await.reclaim, None);
    world.pass(millis(5_000)).await;
    assert_eq!(due(&a, None).await, [""; 0]);
    let current = a.claim("next", outlast_core::run::Purpose::Drive).await;
    let token = current.map_or(token, |claimed| claimed.token);
    a.complete(&token, 1).await.expect("ended");
    world.pass(millis(999)).await;
    assert_eq!(due(&a, None).await, [""; 0]);
    world.pass(millis(1)).await;
    assert_eq!(due(&a, None).await, ["i"]);
}

/// A failed attempt is due again later and later, for whoever comes; once it is gone, it stays so and is not listed.
pub async fn tried_until_it_is_gone(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    ended(&a, "i", Some(0)).await;
    for attempt in 1..=3 {
        let host = if attempt % 2 == 0 { &a } else { &b };
        begin(host, "i").await.expect("due");
        assert_eq!(due(&a, None).await, [""; 0], "somebody is at it");
        fail(host, "i", "not yet\0").await;
        let reclaim = there(&a, "i").await.reclaim.expect("in sight");
        assert_eq!((reclaim.failed, reclaim.owner), (attempt, None));
        assert!(reclaim.error.expect("why").starts_with("not yet"));
        world.pass(millis(reclaim_retry(attempt) - 1)).await;
        assert!(matches!(begin(&a, "i").await, Err(ReclaimRefusal::Kept(Some(1)))));
        world.pass(millis(1)).await;
        assert_eq!(due(&a, None).await, ["i"]);
    }
    begin(&a, "i").await.expect("due");
    a.store.end_reclaim(&instance_id("i"), &a.owner, &ReclaimEnd::Gone).await.expect("written");
    assert_eq!(there(&b, "i").await.state, Gone);
    assert_eq!(begin(&b, "i").await, Err(ReclaimRefusal::Gone));
    let all = a.store.list_instances(&ListInstances { limit: 10, ..ListInstances::default() }).await;
    assert_eq!(all.expect("listed"), []);
}

/// Of several that want to destroy it one does; one that died is succeeded, and what it says afterwards counts only where
/// the instance is gone.
pub async fn one_at_a_time(world: World) {
    let hosts = [world.host("a").await, world.host("b").await];
    ended(&hosts[0], "i", Some(0)).await;
    let answers = all_at_once((0..8).map(|n| {
        let host = hosts[n % 2].clone();
        async move { begin(&host, "i").await.map(|_| n % 2) }
    }))
    .await;
    let winners: Vec<usize> = answers.into_iter().flatten().collect();
    assert!(!winners.is_empty() && winners.iter().all(|winner| *winner == winners[0]), "{winners:?}");
    let (winner, other) = (&hosts[winners[0]], &hosts[1 - winners[0]]);
    assert!(
        matches!(begin(other, "i").await, Err(ReclaimRefusal::Held { owner, .. }) if owner == winner.owner)
    );
    world.pass(LEASE).await;
    assert_eq!(due(other, None).await, ["i"]);
    begin(other, "i").await.expect("taken over");
    fail(winner, "i", "late").await;
    let reclaim = there(other, "i").await.reclaim.expect("in sight");
    assert_eq!((reclaim.failed, reclaim.owner), (0, Some(other.owner.clone())));
    winner.store.end_reclaim(&instance_id("i"), &winner.owner, &ReclaimEnd::Gone).await.expect("written");
    assert_eq!(there(other, "i").await.state, Gone, "gone is gone, whoever says so");
}

/// Everything that is not gone, oldest first, in pages.
pub async fn listed_in_pages(world: World) {
    let a = world.host("a").await;
    for (id, machine, at) in
        [("c", None, 3), ("a", Some("here"), 1), ("b", Some("there"), 2), ("b2", None, 2)]
    {
        let token = a.accept(id, id).await.token;
        a.store.create_instance(&token, &instance(id, id, machine, at)).await.expect("made");
    }
    let list = async |machine: Option<&str>, after: Option<&Instance>, limit| {
        let after = after.map(|last| (last.created_at, last.instance_id.clone()));
        let query = ListInstances { machine: machine.map(str::to_owned), after, limit, due: false };
        a.store.list_instances(&query).await.expect("listed")
    };
    let ids = |page: &[Instance]| -> Vec<String> { page.iter().map(|i| i.instance_id.to_string()).collect() };
    let first = list(None, None, 3).await;
    assert_eq!(ids(&first), ["a", "b", "b2"]);
    assert_eq!(ids(&list(None, first.last(), 3).await), ["c"]);
    assert_eq!(ids(&list(Some("here"), None, 9).await), ["a", "b2", "c"]);
    assert_eq!(there(&a, "a").await, first[0]);
    let stats = a.store.stats().await.expect("counted");
    assert_eq!(stats.instances.into_iter().collect::<Vec<_>>(), [("creating", 4)]);
}
