//! Holding while the store is away.

use std::time::Duration;

use outlast_store::{Clock, StoreError};

use crate::notice::{Notice, Notices};

/// Waits between attempts at a store that is not available, and says so once.
#[derive(Debug)]
pub(crate) struct Hold<'a> {
    clock: &'a dyn Clock,
    notices: &'a Notices,
    patience: Duration,
    since: Option<u64>,
    next: Duration,
}

const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

impl<'a> Hold<'a> {
    pub(crate) fn new(clock: &'a dyn Clock, notices: &'a Notices, patience: Duration) -> Self {
        Hold { clock, notices, patience, since: None, next: FIRST_WAIT }
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
                self.notices.tell(Notice::StoreUnavailable { message: error.to_string() });
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
        if self.since.take().is_some() {
            self.notices.tell(Notice::StoreBack);
        }
        self.next = FIRST_WAIT;
    }
}
