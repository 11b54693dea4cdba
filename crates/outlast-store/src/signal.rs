//! Hints that a run has changed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use outlast_core::RunId;
use tokio::sync::watch;

/// Wakes whoever watches a run. A hint: it may come without a change, and a change may come without it.
#[derive(Debug, Clone)]
pub struct Signal {
    run: watch::Receiver<u64>,
    all: watch::Receiver<u64>,
}

impl Signal {
    /// Returns when something may have changed since the last call.
    pub async fn changed(&mut self) {
        tokio::select! {
            biased;
            gone = self.run.changed() => if gone.is_err() { std::future::pending::<()>().await },
            gone = self.all.changed() => if gone.is_err() { std::future::pending::<()>().await },
        }
    }
}

/// The sending side, one for each store.
#[derive(Debug)]
pub struct Signals {
    all: watch::Sender<u64>,
    runs: Mutex<HashMap<RunId, watch::Sender<u64>>>,
}

impl Default for Signals {
    fn default() -> Self {
        Signals { all: watch::Sender::new(0), runs: Mutex::default() }
    }
}

impl Signals {
    /// A shared instance.
    pub fn shared() -> Arc<Self> {
        Arc::default()
    }

    /// Watches a run.
    pub fn subscribe(&self, run_id: &RunId) -> Signal {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        // Runs that nobody watches any more are forgotten here, so that the map stays as large as what is watched.
        if runs.len() >= 64 && runs.len().is_power_of_two() {
            runs.retain(|_, sender| sender.receiver_count() > 0);
        }
        let sender = runs.entry(run_id.clone()).or_insert_with(|| watch::Sender::new(0));
        Signal { run: sender.subscribe(), all: self.all.subscribe() }
    }

    /// Something of this run has changed.
    pub fn run_changed(&self, run_id: &RunId) {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = runs.get(run_id) {
            sender.send_modify(|n| *n += 1);
        }
    }

    /// Something of some run may have changed.
    pub fn any_changed(&self) {
        self.all.send_modify(|n| *n += 1);
    }
}
