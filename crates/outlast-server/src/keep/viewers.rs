//! Who watches: one presence for each run, however many viewers it has here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outlast_core::RunId;
use outlast_core::run::{CancelReason, OnDisconnect, RunRecord};
use outlast_runtime::Host;
use tokio::sync::watch;

use crate::until::until;

/// How long a cancel for want of viewers is seen through before it is left to the run's driver.
const CANCEL_PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked again, at most, whether the viewer at another process is still there.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub(crate) struct Viewers {
    host: Host,
    grace: Duration,
    runs: Arc<Mutex<HashMap<RunId, watch::Sender<usize>>>>,
}

/// One viewer's attendance, until it is dropped.
#[derive(Debug)]
pub(crate) struct Attendance {
    viewers: Viewers,
    run_id: RunId,
}

impl Drop for Attendance {
    fn drop(&mut self) {
        if let Some(count) = self.viewers.lock().get(&self.run_id) {
            count.send_modify(|n| *n = n.saturating_sub(1));
        }
    }
}

impl Viewers {
    pub fn new(host: Host, grace: Duration) -> Viewers {
        Viewers { host, grace, runs: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, watch::Sender<usize>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A viewer of this live run came.
    pub fn enter(&self, run: &RunRecord) -> Attendance {
        self.count(run, 1);
        Attendance { viewers: self.clone(), run_id: run.run_id.clone() }
    }

    /// The run's viewers, if it had any, were those of a process that is gone; they have the time of the grace to come
    /// back before a run that is to end with its last viewer is cancelled.
    pub fn expect(&self, run: &RunRecord) {
        if run.on_disconnect == OnDisconnect::Cancel {
            self.count(run, 0);
        }
    }

    fn count(&self, run: &RunRecord, more: usize) {
        let mut runs = self.lock();
        match runs.get(&run.run_id) {
            Some(count) => count.send_modify(|n| *n += more),
            None => {
                let (count, counted) = watch::channel(more);
                runs.insert(run.run_id.clone(), count);
                let cancels = run.on_disconnect == OnDisconnect::Cancel;
                tokio::spawn(attend(self.clone(), run.run_id.clone(), cancels, counted));
            }
        }
    }

    /// Forgets the run, unless a viewer has come meanwhile.
    fn leave(&self, run_id: &RunId, count: &watch::Receiver<usize>) -> bool {
        let mut runs = self.lock();
        let gone = *count.borrow() == 0;
        if gone {
            runs.remove(run_id);
        }
        gone
    }
}

/// Keeps the store told, in one task for each run: so what it says of one viewer's coming and of another's going reaches
/// the store in the order in which it happened.
async fn attend(viewers: Viewers, run_id: RunId, cancels: bool, mut count: watch::Receiver<usize>) {
    let host = &viewers.host;
    let mut pause = viewers.grace;
    loop {
        if *count.borrow_and_update() > 0 {
            let presence = host.watch(&run_id);
            until(&mut count, |n| *n == 0).await;
            presence.leave().await;
            pause = viewers.grace;
        }
        if cancels {
            tokio::select! {
                biased;
                () = until(&mut count, |n| *n > 0) => continue,
                () = host.ports().clock.sleep(pause) => {}
            }
            // The store refuses where a viewer is at another process, or the run has ended.
            match host.cancel(&run_id, CancelReason::Disconnect, CANCEL_PATIENCE).await {
                // That process may be gone before it can say that its viewer is.
                Ok(report) if report.watched => {
                    pause = viewers.grace.max(LOOK_AGAIN);
                    continue;
                }
                Ok(report) if report.recorded => {
                    tracing::info!(run = %run_id, "cancelled: its last viewer left and nobody came back");
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(run = %run_id, %error, "a run without viewers could not be cancelled")
                }
            }
        }
        if viewers.leave(&run_id, &count) {
            return;
        }
    }
}
