//! Simulated time: Tokio's paused clock, which jumps to the next timer whenever nothing else is left to do.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_store::Clock;
use tokio::time::Instant;

use super::gate::Gate;

/// The time at which every simulation begins, in milliseconds since 1970.
const BEGIN: u64 = 1_800_000_000_000;

/// The world's clock, and what everybody's is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Time {
    begun: Instant,
}

impl Time {
    /// Begins now.
    #[allow(clippy::disallowed_methods, reason = "this is the port; the clock is paused")]
    pub fn begin() -> Time {
        Time { begun: Instant::now() }
    }

    /// Milliseconds since the beginning.
    pub fn now(self) -> u64 {
        outlast_core::duration::millis(self.begun.elapsed())
    }

    #[allow(clippy::disallowed_methods, reason = "this is the port")]
    pub async fn sleep(self, time: Duration) {
        // At least one tick: a loop that does not wait would stop time.
        tokio::time::sleep(time.max(Duration::from_millis(1))).await;
    }
}

/// One host's clock: its own idea of the day, and no timer while it stands still.
#[derive(Debug)]
pub(super) struct HostClock {
    pub time: Time,
    /// How far its wall clock is off.
    pub skew: i64,
    pub gate: Option<Gate>,
}

impl HostClock {
    /// The clock that the store goes by.
    pub fn of_the_store(time: Time) -> Arc<dyn Clock> {
        Arc::new(HostClock { time, skew: 0, gate: None })
    }
}

#[async_trait]
impl Clock for HostClock {
    fn wall_ms(&self) -> u64 {
        (BEGIN + self.time.now()).saturating_add_signed(self.skew)
    }

    fn boot_ms(&self) -> u64 {
        1_000_000 + self.time.now()
    }

    fn boot_id(&self) -> String {
        "simulated".to_owned()
    }

    async fn sleep(&self, time: Duration) {
        self.time.sleep(time).await;
        if let Some(gate) = &self.gate {
            gate.pass().await;
        }
    }
}
