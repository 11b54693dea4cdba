//! The runs that this process keeps driven.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outlast_core::RunId;
use outlast_runtime::{Host, KeepEnd, Keeper, Started};
use tokio::sync::watch;

use crate::until::until;

/// How long a run that cannot be driven from here is left alone before the next try, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// One keeper for each run, however many viewers it has: two where one came with the claim of a run that another was
/// waiting for already. A run stays in the registry until it has ended.
#[derive(Debug, Clone)]
pub(crate) struct Keepers {
    host: Host,
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// With how many keepers.
    runs: Mutex<HashMap<RunId, usize>>,
    /// How many runs are kept; the last one to leave is waited for at the end.
    count: watch::Sender<usize>,
    stop: watch::Sender<bool>,
}

impl Inner {
    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, usize>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the run out of the registry, also where its task panics.
struct Kept {
    inner: Arc<Inner>,
    run_id: RunId,
}

impl Drop for Kept {
    fn drop(&mut self) {
        let mut runs = self.inner.runs();
        if let Some(keepers) = runs.get_mut(&self.run_id) {
            *keepers -= 1;
            if *keepers == 0 {
                runs.remove(&self.run_id);
            }
        }
        self.inner.count.send_replace(runs.len());
    }
}

impl Keepers {
    pub fn new(host: Host) -> Keepers {
        let inner =
            Inner { runs: Mutex::default(), count: watch::Sender::new(0), stop: watch::Sender::new(false) };
        Keepers { host, inner: Arc::new(inner) }
    }

    /// How many runs are kept.
    pub fn len(&self) -> usize {
        self.inner.runs().len()
    }

    /// Keeps a run that was just started. Whoever asked for it at the same moment may be faster and wait for its driver
    /// already; that is whoever brings the claim.
    pub fn keep(&self, started: Started) {
        let run_id = started.run.run_id.clone();
        if let Some(kept) = self.enter(&run_id, started.new) {
            let first = self.host.keep(started);
            tokio::spawn(attend(self.host.clone(), first, kept));
        }
    }

    /// Keeps a run that was started before, unless it is kept already.
    pub fn ensure(&self, run_id: &RunId) {
        if let Some(kept) = self.enter(run_id, false) {
            let first = self.host.keep_run(run_id);
            tokio::spawn(attend(self.host.clone(), first, kept));
        }
    }

    fn enter(&self, run_id: &RunId, brings_the_claim: bool) -> Option<Kept> {
        if *self.inner.stop.borrow() {
            return None;
        }
        let mut runs = self.inner.runs();
        let keepers = runs.entry(run_id.clone()).or_default();
        if *keepers > 0 && !brings_the_claim {
            return None;
        }
        *keepers += 1;
        self.inner.count.send_replace(runs.len());
        Some(Kept { inner: Arc::clone(&self.inner), run_id: run_id.clone() })
    }

    /// Gives back every claim, so that another process goes on at once, and takes no more. Agents work on.
    pub async fn hand_over(&self) {
        self.inner.stop.send_replace(true);
        let mut count = self.inner.count.subscribe();
        until(&mut count, |count| *count == 0).await;
    }
}

/// Holds the keeper until its run has ended or the server ends; where it cannot go on, tries again later.
async fn attend(host: Host, mut keeper: Keeper, kept: Kept) {
    let mut stop = kept.inner.stop.subscribe();
    let mut pause = FIRST_PAUSE;
    loop {
        tokio::select! {
            biased;
            () = until(&mut stop, |stop| *stop) => return keeper.hand_over().await,
            () = keeper.ended() => {}
        }
        match keeper.end().await {
            KeepEnd::Ended(_) | KeepEnd::Interrupted | KeepEnd::NotFound => return,
            KeepEnd::CannotDrive { code, message } => {
                tracing::warn!(run = %kept.run_id, %code, message, retry_in = ?pause, "the run cannot be driven here");
            }
            KeepEnd::Store(error) => {
                tracing::warn!(run = %kept.run_id, %error, retry_in = ?pause, "the store failed the run's driver");
            }
        }
        tokio::select! {
            biased;
            () = until(&mut stop, |stop| *stop) => return,
            () = host.ports().clock.sleep(pause) => {}
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
        keeper = host.keep_run(&kept.run_id);
    }
}
