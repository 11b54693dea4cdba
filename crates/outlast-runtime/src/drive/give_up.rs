//! Ending a run without its journal.

use std::time::Duration;

use outlast_core::run::{CancelReason, RunRecord};
use outlast_sandbox::KillOutcome;

use super::driver::{DriveEnd, Driver};
use super::finish::Exit;
use crate::Driven;
use crate::claim::Held;
use crate::host::Inner;

/// Why nobody waits for the journal's rest.
#[derive(Debug, Clone, Copy)]
pub(crate) enum GivenUp {
    /// No live host reaches the sandbox.
    Unreachable,
    /// It was to be killed, and that could not be verified in this time.
    Unverified(Duration),
    /// Its agent has ended, and its log does not get on.
    NoProgress,
}

impl Inner {
    /// Ends a claimed run with what its log holds.
    pub(crate) async fn give_up(&self, held: Held, run: RunRecord, why: GivenUp) -> Driven {
        let end = match Driver::new(self, held, run).await {
            Ok(mut driver) => driver.give_up(why).await,
            Err(end) => end,
        };
        match end {
            DriveEnd::Ended(run) => Driven::Ended(run),
            DriveEnd::Superseded | DriveEnd::LeaseRanOut => Driven::Lost,
            DriveEnd::CannotDrive { code, message } => Driven::Failed { code, message },
            DriveEnd::Store(error) => Driven::Failed { code: error.code(), message: error.to_string() },
        }
    }
}

impl Driver<'_> {
    async fn give_up(&mut self, why: GivenUp) -> DriveEnd {
        let unverified = |cause: String| Some(KillOutcome::Unverified { cause });
        let exit = match why {
            GivenUp::Unreachable => {
                // A person's Stop that nobody could carry out is no less a Stop.
                if self.known_cancel().is_some_and(|cancel| cancel.reason != CancelReason::Ttl) {
                    self.killed = unverified("no live host reaches the sandbox".to_owned());
                }
                Exit::Unreachable
            }
            GivenUp::Unverified(time) => {
                self.killed = unverified(format!("the kill was not verified within {time:?}"));
                Exit::NeverLaunched
            }
            GivenUp::NoProgress => Exit::NoProgress,
        };
        self.finish_unlaunched(exit).await
    }
}
