//! A host whose own clocks are wrong. Leases, presence and times are those of the database.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::decide::ClaimRefusal;
use outlast_core::run::{CancelReason, Purpose};
use outlast_store::conformance::Host;
use outlast_store::{
    Accept, CancelOutcome, ClaimError, Clock, Ports, PresenceUntil, SystemClock, SystemEntropy,
};

use crate::support::{Schema, config, eventually, host, host_with, numbered};

/// The machine's clocks, so much later or earlier.
#[derive(Debug)]
struct Shifted(SystemClock, i64);

#[async_trait::async_trait]
impl Clock for Shifted {
    fn wall_ms(&self) -> u64 {
        self.0.wall_ms().saturating_add_signed(self.1)
    }

    fn boot_ms(&self) -> u64 {
        self.0.boot_ms().saturating_add_signed(self.1.max(0))
    }

    fn boot_id(&self) -> String {
        format!("{}-{}", self.0.boot_id(), self.1)
    }

    async fn sleep(&self, time: Duration) {
        self.0.sleep(time).await;
    }
}

const HOUR: i64 = 3_600_000;

async fn shifted(url: &str, owner: &str, by: i64) -> Host {
    let mut config = config(url, owner);
    config.ports =
        Ports { clock: Arc::new(Shifted(SystemClock::new(), by)), entropy: Arc::new(SystemEntropy) };
    host_with(config).await
}

/// Asserts that a time is about now, in milliseconds since 1970.
#[track_caller]
fn assert_now(time: u64) {
    let now = SystemClock::new().wall_ms();
    assert!(time.abs_diff(now) < 60_000, "{time} is not about {now}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_off_in_either_direction() {
    let schema = Schema::new().await;
    let right = host(&schema.url, "right").await;
    for by in [HOUR, -HOUR] {
        let wrong = shifted(&schema.url, &format!("wrong{by}"), by).await;
        for (mine, other) in [(&wrong, &right), (&right, &wrong)] {
            leases(mine, other, &format!("r{by}{}", mine.owner.as_str())).await;
            presence(mine, other, &format!("p{by}{}", mine.owner.as_str())).await;
        }
    }
}

async fn leases(mine: &Host, other: &Host, run: &str) {
    let lease = Duration::from_secs(2);
    let claimed = mine.accept_with(Accept { lease, ..mine.request(run, run) }).await;
    assert_now(claimed.run.started_at);
    for host in [mine, other] {
        let driver = host.record(run).await.driver.expect("driven");
        assert!((1..=2_000).contains(&driver.lease_remaining), "{driver:?}");
        assert_now(driver.since);
    }
    let held = other.claim(run, Purpose::Drive).await;
    assert!(matches!(held, Err(ClaimError::Refused(ClaimRefusal::ClaimHeld { .. }))), "{held:?}");
    let claims = [(claimed.token.run_id.clone(), 1)];
    assert_eq!(mine.store.renew(&mine.owner, &claims, lease).await.expect("renewed").len(), 1);
    mine.store.append(numbered(&claimed.token, 1)).await.expect("written");
    for event in other.log(run).await {
        assert_now(event.at);
    }
    let mut granted = None;
    eventually("the lease runs out", Duration::from_secs(10), async || {
        granted = other.claim(run, Purpose::Drive).await.ok();
        granted.is_some()
    })
    .await;
    let granted = granted.expect("granted");
    assert_eq!(granted.token.epoch, 2);
    mine.store.append(numbered(&claimed.token, 2)).await.expect_err("it was superseded");
    let ended = other.complete(&granted.token, 2).await.expect("ended").run;
    assert_now(ended.finished_at.expect("ended"));
}

async fn presence(mine: &Host, other: &Host, run: &str) {
    let token = mine.accept(run, run).await.token;
    assert_now(other.record(run).await.detached_since.expect("nobody watches"));
    let watch = PresenceUntil::For(Duration::from_secs(1));
    mine.store.presence(&token.run_id, &mine.owner, watch).await.expect("written");
    assert_eq!(other.record(run).await.detached_since, None);
    let ttl = other
        .store
        .request_cancel(&other.tenant, &token.run_id, CancelReason::Ttl, Some(Duration::ZERO))
        .await;
    assert!(matches!(ttl, Ok(CancelOutcome::Watched(_))), "{ttl:?}");
    eventually("its time runs out", Duration::from_secs(10), async || {
        other.record(run).await.detached_since.is_some()
    })
    .await;
    assert_now(mine.record(run).await.detached_since.expect("nobody watches"));
    let ttl = other
        .store
        .request_cancel(&other.tenant, &token.run_id, CancelReason::Ttl, Some(Duration::ZERO))
        .await;
    let Ok(CancelOutcome::Recorded(record)) = ttl else { panic!("{ttl:?}") };
    assert_now(record.cancel_requested.expect("recorded").at);
}
