//! Connections that break.

use std::time::Duration;

use outlast_core::run::Purpose;

use crate::support::{Load, Schema, config, connect, eventually, host_with, server};

/// Each append has taken effect once, wherever its connection was when it was cut.
#[tokio::test(flavor = "multi_thread")]
async fn cut_at_random_under_load() {
    let schema = Schema::new().await;
    let a = host_with(config(&format!("{}&application_name={}", schema.url, schema.name), "a")).await;
    let b = host_with(config(&schema.url, "b")).await;
    let load = Load::begin(&a, "r", 64).await;
    let quiet = a.accept("quiet", "quiet").await.token;
    let admin = connect(&server()).await;
    let mut cut = 0;
    for round in 0..40 {
        let until = load.written() + 100;
        eventually("appends go on", Duration::from_secs(60), async || load.written() >= until).await;
        // One that renews and one that listens are among them.
        let rows = admin
            .query(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                 WHERE application_name = $1 AND ($2 % 10 = 0 OR random() < 0.4)",
                &[&schema.name, &round],
            )
            .await
            .expect("cut");
        cut += rows.len();
        let claims = [(quiet.run_id.clone(), 1)];
        eventually("renewals go on", Duration::from_secs(10), async || {
            a.store.renew(&a.owner, &claims, Duration::from_secs(10)).await.is_ok()
        })
        .await;
        assert!(b.claim("quiet", Purpose::Drive).await.is_err(), "its lease never ran out");
    }
    assert!(cut > 100 && load.away() > 20, "{cut} connections were cut, {} appends felt it", load.away());
    load.check(&a).await;
}
