//! How the jobs fare.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How one job fares. Times in milliseconds on the boot clock.
#[derive(Debug, Clone)]
pub(crate) struct JobStatus {
    /// Its name.
    pub name: &'static str,
    /// How often it is done.
    pub every: Duration,
    /// When the server was started, or it succeeded last.
    pub last_success: u64,
    /// How often it has succeeded.
    pub succeeded: u64,
    /// How often it has failed.
    pub failed: u64,
    /// How long it took last.
    pub took: Duration,
}

/// How all of them fare.
#[derive(Debug, Clone, Default)]
pub(crate) struct Jobs(Arc<Mutex<Vec<JobStatus>>>);

impl Jobs {
    pub fn add(&self, name: &'static str, every: Duration, now: u64) {
        let status =
            JobStatus { name, every, last_success: now, succeeded: 0, failed: 0, took: Duration::ZERO };
        self.lock().push(status);
    }

    pub fn done(&self, name: &'static str, now: u64, took: Duration, succeeded: bool) {
        if let Some(status) = self.lock().iter_mut().find(|status| status.name == name) {
            status.took = took;
            if succeeded {
                status.last_success = now;
                status.succeeded += 1;
            } else {
                status.failed += 1;
            }
        }
    }

    pub fn all(&self) -> Vec<JobStatus> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<JobStatus>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
