//! A clock that stands still until it is told to go on.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outlast_core::duration::millis;
use tokio::sync::watch;

use crate::Clock;

/// A [`Clock`] in the hands of a test.
#[derive(Debug)]
pub struct ManualClock {
    times: Mutex<Times>,
    /// The same as `boot` below, for those who sleep.
    boot: watch::Sender<u64>,
}

#[derive(Debug, Clone)]
struct Times {
    wall: u64,
    boot: u64,
    boot_id: String,
}

impl ManualClock {
    /// A clock of the given boot that shows the given times, in milliseconds since 1970 and since the boot.
    pub fn new(wall: u64, boot: u64, boot_id: impl Into<String>) -> Self {
        let times = Times { wall, boot, boot_id: boot_id.into() };
        ManualClock { times: Mutex::new(times), boot: watch::Sender::new(boot) }
    }

    fn lock(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets time pass, and wakes those whose sleep is over.
    pub fn advance(&self, time: Duration) {
        let boot = {
            let mut times = self.lock();
            times.wall += millis(time);
            times.boot += millis(time);
            times.boot
        };
        self.boot.send_replace(boot);
    }

    /// Sets the wall clock, as an administrator might, without time passing.
    pub fn set_wall(&self, wall: u64) {
        self.lock().wall = wall;
    }
}

#[async_trait::async_trait]
impl Clock for ManualClock {
    fn wall_ms(&self) -> u64 {
        self.lock().wall
    }

    fn boot_ms(&self) -> u64 {
        self.lock().boot
    }

    fn boot_id(&self) -> String {
        self.lock().boot_id.clone()
    }

    async fn sleep(&self, time: Duration) {
        let until = self.boot_ms().saturating_add(millis(time));
        let mut boot = self.boot.subscribe();
        // The sender lives as long as this clock.
        let _ = boot.wait_for(|now| *now >= until).await;
    }
}
