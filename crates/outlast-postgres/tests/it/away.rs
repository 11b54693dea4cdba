//! The server goes away and comes back.

use std::time::{Duration, Instant};

use outlast_core::decide::{ClaimRefusal, Fenced};
use outlast_core::run::Purpose;
use outlast_store::conformance::Host;
use outlast_store::{Accept, AppendError, ClaimError, StoreError};

use crate::support::{Cluster, Load, eventually, host, numbered, retried, settled};

/// Longer than anything here should take.
const LONG: Duration = Duration::from_secs(60);

async fn goes_on(load: &Load, by: u64) {
    let until = load.written() + by;
    eventually("appends go on", LONG, async || load.written() >= until).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_restarts_in_the_middle_of_appends_loses_and_doubles_nothing() {
    let cluster = Cluster::start();
    let a = host(&cluster.url(), "a").await;
    let load = Load::begin(&a, "r", 32).await;
    for _ in 0..4 {
        goes_on(&load, 200).await;
        cluster.restart();
    }
    goes_on(&load, 200).await;
    assert!(load.away() >= 4, "appends were under way each time");
    load.check(&a).await;
}

async fn accept(host: &Host, run: &str, lease: Duration) -> outlast_core::run::ClaimToken {
    host.accept_with(Accept { lease, ..host.request(run, run) }).await.token
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_connections_for_some_seconds() {
    // A minute takes a minute, so it is for whoever asks for it.
    let seconds =
        std::env::var("OUTLAST_TEST_OUTAGE_SECONDS").map_or(6, |text| text.parse().expect("a number"));
    let outage = Duration::from_secs(seconds);
    let cluster = Cluster::start();
    let (a, b) = (host(&cluster.url(), "a").await, host(&cluster.url(), "b").await);
    let load = Load::begin(&a, "r", 16).await;
    let short = accept(&a, "short", Duration::from_secs(2)).await;
    let long = accept(&a, "long", Duration::from_secs(600) + outage).await;
    let claims = [(short.run_id.clone(), 1), (long.run_id.clone(), 1)];
    goes_on(&load, 100).await;

    cluster.stop();
    let stopped = Instant::now();
    let mut answers = 0;
    while stopped.elapsed() < outage {
        // Every kind of operation says at once that it may succeed later.
        let asked = Instant::now();
        let renewed = a.store.renew(&a.owner, &claims, Duration::from_secs(2)).await;
        assert!(matches!(renewed, Err(StoreError::Unavailable { .. })), "{renewed:?}");
        assert!(settled(a.store.append(numbered(&long, 1)).await).is_none());
        assert!(settled(a.store.accept(a.request("new", "new")).await).is_none());
        assert!(settled(b.claim("short", Purpose::Drive).await).is_none());
        assert!(settled(a.store.run(&a.tenant, &long.run_id).await).is_none());
        assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
        answers += 1;
    }
    assert!(answers > 1);
    cluster.go_on();

    goes_on(&load, 200).await;
    load.check(&a).await;
    // A lease that ran out meanwhile is not used any more, and one that did not still is, whatever its owner renews.
    let refused = retried(async || match b.claim("long", Purpose::Drive).await {
        Err(ClaimError::Refused(refusal)) => Ok(refusal),
        Err(error) => Err(error),
        Ok(claimed) => panic!("granted: {claimed:?}"),
    })
    .await;
    assert!(matches!(refused, ClaimRefusal::ClaimHeld { .. }), "{refused:?}");
    let claimed = retried(async || b.claim("short", Purpose::Drive).await).await;
    assert_eq!(claimed.token.epoch, 2);
    let renewed = retried(async || a.store.renew(&a.owner, &claims, Duration::from_secs(2)).await).await;
    assert_eq!(renewed.iter().map(|one| one.run_id.as_str()).collect::<Vec<_>>(), ["long"]);
    let late = a.store.append(numbered(&short, 1)).await;
    let lost = Fenced::ClaimLost { run_id: short.run_id.clone(), held_epoch: 1, current_epoch: 2 };
    assert!(matches!(&late, Err(AppendError::Fenced(fenced)) if *fenced == lost), "{late:?}");
    assert_eq!(settled(a.store.append(numbered(&long, 1)).await).expect("written").tail.0, 2);
}
