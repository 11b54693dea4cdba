//! Holding while the store is away.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outlast_store::{Clock, StoreError};

use crate::notice::{Notice, Notices};

/// Whether a host has told that its store takes no writes. All that hold share it: whoever began to hold may have lost
/// its lease meanwhile, and somebody else finds the store back.
#[derive(Debug, Default)]
pub(crate) struct WritesAway(AtomicBool);

/// Waits between attempts at a store that is not available, and says so once.
#[derive(Debug)]
pub(crate) struct Hold<'a> {
    clock: &'a dyn Clock,
    notices: &'a Notices,
    patience: Duration,
    /// None for reads, which may succeed while writes do not.
    writes: Option<&'a WritesAway>,
    since: Option<u64>,
    next: Duration,
}

const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

impl<'a> Hold<'a> {
    pub(crate) fn new(
        clock: &'a dyn Clock,
        notices: &'a Notices,
        patience: Duration,
        writes: Option<&'a WritesAway>,
    ) -> Self {
        Hold { clock, notices, patience, writes, since: None, next: FIRST_WAIT }
    }

    /// After a failed attempt: waits and returns, or gives the error back where repeating is useless or patience has
    /// run out.
    pub(crate) async fn wait(&mut self, error: StoreError) -> Result<(), StoreError> {
        if !error.is_transient() {
            return Err(error);
        }
        let now = self.clock.boot_ms();
        match self.since {
            None => {
                self.since = Some(now);
                if self.writes.is_none_or(|away| !away.0.swap(true, Ordering::Relaxed)) {
                    self.notices.tell(Notice::StoreUnavailable { message: error.to_string() });
                }
            }
            Some(since) if now.saturating_sub(since) > self.patience.as_millis() as u64 => return Err(error),
            Some(_) => {}
        }
        self.clock.sleep(self.next).await;
        self.next = (self.next * 2).min(LONGEST_WAIT);
        Ok(())
    }

    /// After an attempt that succeeded.
    pub(crate) fn done(&mut self) {
        let held = self.since.take().is_some();
        if self.writes.map_or(held, |away| away.0.swap(false, Ordering::Relaxed)) {
            self.notices.tell(Notice::StoreBack);
        }
        self.next = FIRST_WAIT;
    }
}
