//! What those see who watch over runs and hosts.

use std::time::Duration;

use outlast_core::OwnerId;

use crate::conformance::world::{Host, LEASE, World, run_id};
use crate::{HostSeen, ListRuns, PresenceUntil, WriteError};

/// Runs that nobody watches are found, the watched and the ended are not.
pub async fn detached_runs_are_listed(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    for run in ["left", "watched", "ended"] {
        let token = a.accept(run, run).await.token;
        if run == "ended" {
            a.complete(&token, 1).await.expect("ended");
        }
        world.pass(Duration::from_millis(1)).await;
    }
    let watch = PresenceUntil::For(Duration::from_secs(5));
    a.store.presence(&run_id("watched"), &a.owner, watch).await.expect("said");
    let detached = async || {
        let query = ListRuns { detached: true, limit: 10, ..ListRuns::default() };
        let runs = b.store.list_runs(&query).await.expect("listed");
        runs.into_iter().map(|run| run.run_id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(detached().await, ["left"]);
    let stats = b.store.stats().await.expect("counted");
    assert_eq!((stats.detached, stats.undriven, stats.overdue), (1, 0, 0));
    assert_eq!(stats.runs.into_iter().collect::<Vec<_>>(), [("completed", 1), ("running", 2)]);
    world.pass(LEASE).await;
    assert_eq!(detached().await, ["watched", "left"]);
    let stats = b.store.stats().await.expect("counted");
    assert_eq!((stats.detached, stats.undriven), (2, 2));
    assert!(stats.oldest_detached.expect("detached") >= 10_000);
    world.pass(Duration::from_secs(86_400)).await;
    assert_eq!(b.store.stats().await.expect("counted").overdue, 2);
}

/// Stalls are counted as long as the log stays where it is; each gives the claim back and is fenced.
pub async fn stalls_are_counted(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let first = a.accept("r", "t").await.token;
    assert_eq!(a.store.note_stall(&first).await.expect("noted"), 1);
    assert!(matches!(a.store.note_stall(&first).await, Err(WriteError::Fenced(_))));
    let drive = outlast_core::run::Purpose::Drive;
    let second = b.claim("r", drive).await.expect("it was given back").token;
    assert_eq!(b.store.note_stall(&second).await.expect("noted"), 2);
    let third = a.claim("r", drive).await.expect("granted").token;
    a.append(&third, 1, &["it gets on"]).await.expect("written");
    assert_eq!(a.store.note_stall(&third).await.expect("noted"), 1);
}

/// Hosts that have announced themselves are there until their time runs out.
pub async fn hosts_that_are_alive(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let seen = |host: &Host, machine: &str| HostSeen {
        owner: host.owner.clone(),
        machine: Some(machine.to_owned()),
        version: "1".to_owned(),
        since: 0,
    };
    let alive = async || {
        let hosts = a.store.hosts().await.expect("listed");
        hosts.into_iter().map(|host| (host.owner, host.machine.expect("told"))).collect::<Vec<_>>()
    };
    assert_eq!(alive().await, []);
    a.store.announce(&seen(&a, "here"), Duration::from_secs(10)).await.expect("said");
    b.store.announce(&seen(&b, "there"), Duration::from_secs(20)).await.expect("said");
    let owner = |id: &str| OwnerId::new(id).expect("id");
    assert_eq!(alive().await, [(owner("a"), "here".to_owned()), (owner("b"), "there".to_owned())]);
    world.pass(Duration::from_secs(9)).await;
    a.store.announce(&seen(&a, "here"), Duration::from_secs(2)).await.expect("said");
    world.pass(Duration::from_millis(1_999)).await;
    assert_eq!(alive().await.len(), 2);
    world.pass(Duration::from_millis(1)).await;
    assert_eq!(alive().await, [(owner("b"), "there".to_owned())]);
}
