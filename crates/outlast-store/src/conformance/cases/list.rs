//! Finding runs.

use std::time::Duration;

use outlast_core::Tenant;
use outlast_core::run::{Purpose, Status};

use crate::ListRuns;
use crate::conformance::world::{Host, LEASE, World, thread_id};

async fn ids(host: &Host, query: ListRuns) -> Vec<String> {
    let runs = host.store.list_runs(&query).await.expect("listed");
    runs.into_iter().map(|run| run.run_id.as_str().to_owned()).collect()
}

fn first(limit: usize) -> ListRuns {
    ListRuns { limit, ..ListRuns::default() }
}

/// The newest comes first; each page goes on where the one before ended, also among runs of one millisecond.
pub async fn newest_first_in_pages(world: World) {
    let a = world.host("a").await;
    for n in 0..11 {
        a.accept(&format!("r{n:02}"), &format!("t{n}")).await;
        if n % 3 == 0 {
            world.pass(Duration::from_millis(1)).await;
        }
    }
    let expected: Vec<String> = (0..11).rev().map(|n| format!("r{n:02}")).collect();
    assert_eq!(ids(&a, first(100)).await, expected);
    for limit in 1..5 {
        let mut seen = Vec::new();
        let mut after = None;
        loop {
            let page = a.store.list_runs(&ListRuns { after, ..first(limit) }).await.expect("listed");
            let Some(last) = page.last() else { break };
            assert!(page.len() <= limit);
            after = Some((last.started_at, last.run_id.clone()));
            seen.extend(page.into_iter().map(|run| run.run_id.as_str().to_owned()));
        }
        assert_eq!(seen, expected);
    }
    assert_eq!(ids(&a, first(0)).await, [""; 0]);
}

/// Thread, status and tenant narrow the list; a run in it is the same as asked for by its id.
pub async fn filters(world: World) {
    let a = world.host("a").await;
    let done = a.accept("done", "t1").await.token;
    a.complete(&done, 1).await.expect("ended");
    world.pass(Duration::from_millis(1)).await;
    a.accept("live", "t1").await;
    world.pass(Duration::from_millis(1)).await;
    a.accept("other", "t2").await;
    let of = |thread: Option<&str>, statuses: &[Status]| ListRuns {
        thread_id: thread.map(thread_id),
        statuses: statuses.to_vec(),
        ..first(10)
    };
    assert_eq!(ids(&a, of(None, &[])).await, ["other", "live", "done"]);
    assert_eq!(ids(&a, of(Some("t1"), &[])).await, ["live", "done"]);
    assert_eq!(ids(&a, of(None, &[Status::Running])).await, ["other", "live"]);
    assert_eq!(ids(&a, of(Some("t1"), &[Status::Running])).await, ["live"]);
    assert_eq!(ids(&a, of(None, &[Status::Completed, Status::Failed])).await, ["done"]);
    assert_eq!(ids(&a, of(None, &[Status::Running, Status::Completed])).await, ["other", "live", "done"]);
    assert_eq!(ids(&a, of(None, &[Status::Interrupted])).await, [""; 0]);
    let elsewhere = ListRuns { tenant: Tenant("other".to_owned()), ..first(10) };
    assert_eq!(ids(&a, elsewhere).await, [""; 0]);
    for run in a.store.list_runs(&first(10)).await.expect("listed") {
        assert_eq!(run, a.record(run.run_id.as_str()).await);
    }
}

/// Runs that nobody drives are found by whoever looks: given back, lapsed, but neither driven nor ended.
pub async fn runs_without_a_driver(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    a.accept("lapsed", "t0").await;
    let ended = a.accept("ended", "t1").await.token;
    a.complete(&ended, 1).await.expect("ended");
    world.pass(LEASE).await;
    let released = a.accept("released", "t2").await.token;
    a.store.release(&released).await.expect("released");
    world.pass(Duration::from_millis(1)).await;
    a.accept("driven", "t3").await;
    let undriven = || ListRuns { undriven: true, ..first(10) };
    for host in [&a, &b] {
        assert_eq!(ids(host, undriven()).await, ["released", "lapsed"]);
        assert_eq!(ids(host, ListRuns { limit: 1, ..undriven() }).await, ["released"]);
        assert_eq!(ids(host, ListRuns { statuses: vec![Status::Completed], ..undriven() }).await, [""; 0]);
    }
    b.claim("lapsed", Purpose::Drive).await.expect("granted");
    assert_eq!(ids(&a, undriven()).await, ["released"]);
}

/// A thread's active run is found while it runs.
pub async fn the_active_run(world: World) {
    let a = world.host("a").await;
    let find = || async {
        let found = a.store.find_active_run(&a.tenant, &thread_id("t")).await.expect("answered");
        found.map(|run| run.run_id.as_str().to_owned())
    };
    assert_eq!(find().await, None);
    for run in ["r1", "r2"] {
        let token = a.accept(run, "t").await.token;
        assert_eq!(find().await.as_deref(), Some(run));
        a.complete(&token, 1).await.expect("ended");
        assert_eq!(find().await, None);
    }
}
