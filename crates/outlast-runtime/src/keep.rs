//! Seeing to it that a run is driven.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast_core::decide::ClaimRefusal;
use outlast_core::run::{ClaimToken, Purpose, RunRecord, Status};
use outlast_core::{ErrorCode, RunId};
use outlast_store::{ClaimError, StoreError};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::accept::Started;
use crate::claim::Held;
use crate::drive::{DriveEnd, Driver};
use crate::host::Inner;
use crate::notice::Notice;
use crate::{Host, fail};

/// How often a run that another host drives is looked at: it may need a driver soon.
const LOOK: Duration = Duration::from_millis(200);

/// Why a keeper stopped.
#[derive(Debug)]
pub enum KeepEnd {
    /// The run has ended.
    Ended(Box<RunRecord>),
    /// The run waits for a person.
    Interrupted,
    /// There is no such run.
    NotFound,
    /// This host cannot drive it, and nobody else does at the moment.
    CannotDrive {
        /// The stable code.
        code: ErrorCode,
        /// Why, and what to do.
        message: String,
    },
    /// The store failed for good, or for longer than it is waited for.
    Store(StoreError),
}

/// Keeps a run driven, in the background: by this host while it holds the claim, and again once another driver is gone.
#[derive(Debug)]
pub struct Keeper {
    host: Host,
    holds: Holds,
    ended: watch::Receiver<bool>,
    task: JoinHandle<KeepEnd>,
}

/// The claim that a keeper holds at the moment, so that it can be given back by whoever stops the keeper.
#[derive(Debug, Clone, Default)]
struct Holds(Arc<Mutex<Option<ClaimToken>>>);

impl Holds {
    fn set(&self, token: Option<ClaimToken>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = token;
    }

    fn take(&self) -> Option<ClaimToken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Host {
    /// Keeps a started run driven.
    pub fn keep(&self, started: Started) -> Keeper {
        let run_id = started.run.run_id.clone();
        self.spawn_keeper(run_id, started.held.map(|held| (held, started.run)))
    }

    /// Keeps a run driven that was started before.
    pub fn keep_run(&self, run_id: &RunId) -> Keeper {
        self.spawn_keeper(run_id.clone(), None)
    }

    fn spawn_keeper(&self, run_id: RunId, claimed: Option<(Held, RunRecord)>) -> Keeper {
        let inner = Arc::clone(&self.inner);
        let (done, ended) = watch::channel(false);
        let holds = Holds::default();
        let task = tokio::spawn({
            let holds = holds.clone();
            async move {
                let end = keep(&inner, &run_id, claimed, &holds).await;
                let _ = done.send(true);
                end
            }
        });
        Keeper { host: self.clone(), holds, ended, task }
    }

    /// Launches a started run and gives the claim back: nobody drives it afterwards.
    pub async fn launch_only(&self, started: Started) -> KeepEnd {
        let run_id = started.run.run_id.clone();
        let Some(held) = started.held else {
            return KeepEnd::Ended(Box::new(started.run));
        };
        let end = match Driver::new(&self.inner, held, started.run).await {
            Ok(driver) => driver.launch_only().await,
            Err(end) => end,
        };
        match end {
            DriveEnd::Ended(run) => KeepEnd::Ended(run),
            DriveEnd::Store(error) => KeepEnd::Store(error),
            DriveEnd::CannotDrive { code, message } => KeepEnd::CannotDrive { code, message },
            DriveEnd::Superseded | DriveEnd::LeaseRanOut => match self.inner.run(&run_id).await {
                Ok(Some(run)) => KeepEnd::Ended(Box::new(run)),
                Ok(None) => KeepEnd::NotFound,
                Err(error) => KeepEnd::Store(error),
            },
        }
    }
}

impl Keeper {
    /// Whether the keeper has stopped by itself; [`Keeper::end`] tells why.
    pub fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Returns once the keeper has stopped by itself.
    pub async fn ended(&mut self) {
        // An error means that the task is gone, which is an end as well.
        let _ = self.ended.wait_for(|ended| *ended).await;
    }

    /// Why the keeper stopped.
    pub async fn end(self) -> KeepEnd {
        self.task.await.unwrap_or_else(|error| KeepEnd::CannotDrive {
            code: ErrorCode::Internal,
            message: format!("the driver failed: {error}"),
        })
    }

    /// Stops driving and gives the claim back, so that another host goes on at once. The agent works on.
    pub async fn hand_over(self) {
        self.task.abort();
        // Aborted between two awaits: everything that was committed is complete, everything else was not begun.
        let _ = self.task.await;
        fail::point("release.before");
        if let Some(token) = self.holds.take() {
            self.host.inner.release(&token).await;
        }
    }
}

impl Inner {
    /// Drives the run to its end, as far as this host gets with one claim.
    pub(crate) async fn drive(&self, held: Held, run: RunRecord) -> DriveEnd {
        match Driver::new(self, held, run).await {
            Ok(driver) => Box::pin(driver.drive()).await,
            Err(end) => end,
        }
    }

    /// As [`Inner::drive`], and where that ends the run, what its end brings with it.
    async fn drive_and_keep(&self, held: Held, run: RunRecord) -> DriveEnd {
        let end = self.drive(held, run).await;
        if let DriveEnd::Ended(run) = &end {
            // Viewers have the end by now: nobody waits for this.
            self.checkpoint_after(run).await;
        }
        end
    }
}

async fn keep(host: &Inner, run_id: &RunId, claimed: Option<(Held, RunRecord)>, holds: &Holds) -> KeepEnd {
    let mut next = claimed;
    loop {
        if let Some((held, run)) = next.take() {
            holds.set(Some(held.token.clone()));
            let end = host.drive_and_keep(held, run).await;
            holds.set(None);
            match end {
                DriveEnd::Ended(run) => return KeepEnd::Ended(run),
                DriveEnd::Store(error) => return KeepEnd::Store(error),
                DriveEnd::CannotDrive { code, message } => return KeepEnd::CannotDrive { code, message },
                DriveEnd::Superseded | DriveEnd::LeaseRanOut => {}
            }
        }
        let run = match host.run(run_id).await {
            Ok(Some(run)) => run,
            Ok(None) => return KeepEnd::NotFound,
            Err(error) => return KeepEnd::Store(error),
        };
        if run.status.is_terminal() {
            return KeepEnd::Ended(Box::new(run));
        }
        if run.status == Status::Interrupted {
            return KeepEnd::Interrupted;
        }
        if let Some(driver) = &run.driver {
            // At the latest when its lease ends: then it is either renewed or gone.
            let rest = Duration::from_millis(driver.lease_remaining.saturating_add(1));
            host.ports.clock.sleep(LOOK.min(rest)).await;
            continue;
        }
        let purpose = if run.cancel_requested.is_some() { Purpose::End } else { Purpose::Drive };
        fail::point("claim.before");
        match host.claim(run_id, purpose).await {
            Ok((held, run)) => {
                fail::point("claim.after");
                host.notices.tell(Notice::TookOver { run_id: run_id.clone(), epoch: held.token.epoch });
                next = Some((held, run));
            }
            Err(ClaimError::Store(error)) => return KeepEnd::Store(error),
            Err(ClaimError::Refused(ClaimRefusal::RunNotFound(_))) => return KeepEnd::NotFound,
            // Somebody was faster, or a cancel came in between: look again.
            Err(ClaimError::Refused(_)) => host.ports.clock.sleep(LOOK / 4).await,
        }
    }
}
