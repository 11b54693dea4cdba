//! What sweeps have done since the server was started.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use outlast_runtime::{ReapOutcome, ReapResult};

/// How many runs have had each outcome.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcomes(Arc<Mutex<BTreeMap<ReapOutcome, u64>>>);

impl Outcomes {
    pub fn add(&self, result: &ReapResult) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (outcome, count) in &result.outcomes {
            *counts.entry(*outcome).or_default() += *count as u64;
        }
    }

    pub fn all(&self) -> BTreeMap<ReapOutcome, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
