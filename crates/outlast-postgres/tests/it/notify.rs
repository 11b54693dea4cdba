//! Hints from host to host.

use std::time::{Duration, Instant};

use outlast_core::run::ClaimToken;
use outlast_store::Signal;
use outlast_store::conformance::Host;

use crate::support::{Schema, config, connect, eventually, host, host_with, numbered, server};

/// How long until the other host is told of this append; none where it is not within the time.
async fn told(
    writer: &Host,
    token: &ClaimToken,
    tail: u64,
    signal: &mut Signal,
    at_most: Duration,
) -> Option<Duration> {
    writer.store.append(numbered(token, tail)).await.expect("written");
    let written = Instant::now();
    tokio::time::timeout(at_most, signal.changed()).await.ok().map(|()| written.elapsed())
}

/// Returns once the host listens: what is told before is not heard.
async fn until_listening(application: &str) {
    let admin = connect(&server()).await;
    let listening = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND query LIKE 'LISTEN%' \
                     AND state = 'idle'";
    eventually("it listens", Duration::from_secs(10), async || {
        admin.query_one(listening, &[&application]).await.expect("counted").get::<_, i64>(0) == 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_host_hears_of_every_change_well_before_it_looks_itself() {
    let schema = Schema::new().await;
    let a = host(&schema.url, "a").await;
    let b = host(&format!("{}&application_name={}", schema.url, schema.name), "b").await;
    let token = a.accept("r", "r").await.token;
    until_listening(&schema.name).await;
    let mut signal = b.store.subscribe(&token.run_id);
    let mut all = Vec::new();
    for tail in 1..40 {
        all.push(told(&a, &token, tail, &mut signal, Duration::from_secs(2)).await.expect("told"));
    }
    all.sort();
    assert!(all[all.len() / 2] < Duration::from_millis(100), "{all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_sends_none_and_one_that_hears_none() {
    let schema = Schema::new().await;
    let silent = |owner: &str| {
        let mut config = config(&schema.url, owner);
        config.notifications = false;
        config
    };
    let (a, b) = (host_with(silent("a")).await, host_with(silent("b")).await);
    let c = host(&format!("{}&application_name={}", schema.url, schema.name), "c").await;
    let token = a.accept("r", "r").await.token;
    until_listening(&schema.name).await;
    let (mut here, mut there, mut listens) = (
        a.store.subscribe(&token.run_id),
        b.store.subscribe(&token.run_id),
        c.store.subscribe(&token.run_id),
    );
    assert!(told(&a, &token, 1, &mut here, Duration::from_secs(2)).await.is_some(), "within the process");
    assert!(told(&a, &token, 2, &mut there, Duration::from_millis(300)).await.is_none());
    assert!(told(&a, &token, 3, &mut listens, Duration::from_millis(300)).await.is_none());
    assert_eq!(b.log("r").await.len(), 4, "what nobody told of is there for whoever looks");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_whose_connection_is_cut_hears_again() {
    let schema = Schema::new().await;
    let a = host(&schema.url, "a").await;
    let b = host(&format!("{}&application_name={}", schema.url, schema.name), "b").await;
    let token = a.accept("r", "r").await.token;
    let admin = connect(&server()).await;
    let mut signal = b.store.subscribe(&token.run_id);
    for tail in 1..4 {
        until_listening(&schema.name).await;
        // What was told before it listened again was not heard, so it is woken for it.
        while tokio::time::timeout(Duration::from_millis(100), signal.changed()).await.is_ok() {}
        let cut = admin
            .query(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 \
                 AND query LIKE 'LISTEN%'",
                &[&schema.name],
            )
            .await
            .expect("cut");
        assert_eq!(cut.len(), 1);
        a.store.append(numbered(&token, tail)).await.expect("written");
        let woken = tokio::time::timeout(Duration::from_secs(5), signal.changed()).await;
        assert!(woken.is_ok(), "it is woken when it listens again");
    }
    until_listening(&schema.name).await;
    while tokio::time::timeout(Duration::from_millis(100), signal.changed()).await.is_ok() {}
    let latency = told(&a, &token, 4, &mut signal, Duration::from_secs(2)).await.expect("told");
    assert!(latency < Duration::from_millis(500), "{latency:?}");
}
