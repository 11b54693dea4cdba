//! Leases are renewed in time, whatever else goes on.

use std::time::{Duration, Instant};

use outlast_store::Accept;

use crate::support::{Load, Schema, config, host, host_with};

/// Every connection of the pool is busy with slow transactions, and half of the runs are locked by them.
#[tokio::test(flavor = "multi_thread")]
async fn are_not_starved_by_load() {
    let lease = Duration::from_secs(3);
    let schema = Schema::new().await;
    let mut two = config(&schema.url, "a");
    two.connections = 2;
    let (a, b) = (host_with(two).await, host(&schema.url, "b").await);
    let mut claims = Vec::new();
    for n in 0..20 {
        let run = format!("quiet{n}");
        let token = a.accept_with(Accept { lease, ..a.request(&run, &run) }).await.token;
        claims.push((token.run_id, token.epoch));
    }
    let load = Load::begin_with(&a, "busy", 6, lease).await;
    claims.extend(load.claims.iter().cloned());
    schema
        .client()
        .await
        .batch_execute(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN PERFORM pg_sleep(0.7); RETURN new; END'; \
             CREATE TRIGGER slow BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION slow()",
        )
        .await
        .expect("slow");
    let began = Instant::now();
    let mut renewals = 0;
    while began.elapsed() < lease * 3 {
        let asked = Instant::now();
        let renewed = a.store.renew(&a.owner, &claims, lease).await.expect("renewed");
        assert!(asked.elapsed() < lease / 3, "a renewal took {:?}", asked.elapsed());
        assert_eq!(renewed.len(), claims.len(), "nothing is left out");
        renewals += 1;
        tokio::time::sleep(lease / 3).await;
        for (run, _) in &claims {
            let driver = b.record(run.as_str()).await.driver;
            assert!(driver.is_some(), "the lease of {run} has run out after {:?}", began.elapsed());
        }
    }
    assert!(renewals >= 5, "{renewals}");
    assert!(load.written() > 0, "the load was one");
    load.check(&a).await;
}

/// Those who write are not held up for longer than by any other short write: a renewal holds no row while it waits for
/// another.
#[tokio::test(flavor = "multi_thread")]
async fn hold_nobody_up() {
    let schema = Schema::new().await;
    let a = host(&schema.url, "a").await;
    let mut claims = Vec::new();
    for n in 0..4 {
        let run = format!("r{n}");
        claims.push((a.accept(&run, &run).await.token, 1));
    }
    let lock = schema.lock("r3").await;
    let named: Vec<_> = claims.iter().map(|(token, epoch)| (token.run_id.clone(), *epoch)).collect();
    let renewing = tokio::spawn({
        let a = a.clone();
        async move { a.store.renew(&a.owner, &named, Duration::from_secs(600)).await }
    });
    while lock.waiting().await == 0 {
        tokio::task::yield_now().await;
    }
    for (token, _) in &claims[..3] {
        let append = a.store.append(crate::support::numbered(token, 1));
        crate::support::within(Duration::from_millis(200), "an append", append).await.expect("written");
    }
    lock.release().await;
    let renewed = renewing.await.expect("it ends").expect("renewed");
    assert!(
        renewed.len() == 4 && renewed.iter().all(|one| one.lease == Duration::from_secs(600)),
        "{renewed:?}"
    );
}
