//! Whether somebody watches is derived, from what every host said last.

use std::time::Duration;

use outlast_core::OwnerId;

use crate::PresenceUntil::{For, Left};
use crate::conformance::world::{Host, World, run_id};
use crate::{ListRuns, PresenceUntil};

async fn say(host: &Host, until: PresenceUntil) {
    host.store.presence(&run_id("r"), &host.owner, until).await.expect("written");
}

async fn detached(host: &Host) -> Option<u64> {
    host.record("r").await.detached_since
}

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A run that nobody has watched is detached since its acceptance; in every way of looking at it.
pub async fn detached_from_the_start(world: World) {
    let a = world.host("a").await;
    let started = a.accept("r", "t").await.run.started_at;
    assert_eq!(detached(&a).await, Some(started));
    world.pass(seconds(60)).await;
    assert_eq!(detached(&a).await, Some(started));
    let listed = a.store.list_runs(&ListRuns { limit: 1, ..ListRuns::default() }).await.expect("listed");
    assert_eq!(listed[0].detached_since, Some(started));
}

/// Of several hosts the one whose viewers stay the longest counts, and it is renewed.
pub async fn the_latest_viewer_counts(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let started = a.accept("r", "t").await.run.started_at;
    say(&a, For(seconds(10))).await;
    say(&b, For(seconds(20))).await;
    world.pass(seconds(15)).await;
    assert_eq!(detached(&a).await, None, "somebody watches on the other host");
    world.pass(seconds(5)).await;
    assert_eq!(detached(&a).await, Some(started + 20_000), "its time has run out: it may be dead");
    say(&a, For(seconds(10))).await;
    assert_eq!(detached(&b).await, None);
    world.pass(seconds(5)).await;
    say(&a, For(seconds(10))).await;
    world.pass(seconds(9)).await;
    assert_eq!(detached(&b).await, None);
    world.pass(seconds(1)).await;
    assert_eq!(detached(&b).await, Some(started + 35_000));
}

/// A viewer that leaves counts until it leaves, and not after.
pub async fn a_viewer_leaves(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let started = a.accept("r", "t").await.run.started_at;
    say(&a, For(seconds(60))).await;
    say(&b, For(seconds(60))).await;
    world.pass(seconds(3)).await;
    say(&a, Left).await;
    assert_eq!(detached(&a).await, None, "the other one is still there");
    world.pass(seconds(4)).await;
    say(&b, Left).await;
    assert_eq!(detached(&a).await, Some(started + 7_000));
    world.pass(seconds(4)).await;
    say(&b, Left).await;
    assert_eq!(detached(&a).await, Some(started + 7_000), "leaving again is not being there");
}

/// A run that has ended is not detached, whoever watches it.
pub async fn an_ended_run_is_not_detached(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    a.complete(&token, 1).await.expect("ended");
    assert_eq!(detached(&a).await, None);
    say(&a, For(seconds(5))).await;
    world.pass(seconds(50)).await;
    assert_eq!(detached(&a).await, None);
}

/// A host that never watched leaves no trace; nor does one that watches a run that does not exist.
pub async fn who_never_came_cannot_leave(world: World) {
    let a = world.host("a").await;
    let started = a.accept("r", "t").await.run.started_at;
    world.pass(seconds(5)).await;
    say(&a, Left).await;
    assert_eq!(detached(&a).await, Some(started));
    let other = OwnerId::new("other").expect("an owner id");
    a.store.presence(&run_id("none"), &other, For(seconds(5))).await.expect("without effect");
}
