//! How to sweep.

use std::sync::Arc;
use std::time::Duration;

use super::{ReapSteps, ShippedSteps};

/// How to sweep. The defaults suit one sweep a minute.
#[derive(Debug, Clone)]
pub struct ReapOptions {
    /// How long any run may go on without a viewer, whatever its record says.
    pub ttl: Option<Duration>,
    /// How long a run may wait for a person without a viewer; none: for ever.
    pub interrupted_ttl: Option<Duration>,
    /// How many runs are driven or ended at most; the next sweep goes on with the others.
    pub max_runs: usize,
    /// How long a run may make no progress while it is finalised before it is left to the next sweep; and how long one whose
    /// time is up may take to be ended.
    pub run_budget: Duration,
    /// When no further run is begun with; none: every run is looked at.
    pub time_limit: Option<Duration>,
    /// How many journals are asked at once.
    pub probes_at_once: usize,
    /// How many runs are driven or ended at once.
    pub drives_at_once: usize,
    /// What a sweep does to a run.
    pub steps: Arc<dyn ReapSteps>,
}

impl Default for ReapOptions {
    fn default() -> Self {
        ReapOptions {
            ttl: None,
            interrupted_ttl: None,
            max_runs: 25,
            run_budget: Duration::from_secs(30),
            time_limit: None,
            probes_at_once: 16,
            drives_at_once: 4,
            steps: Arc::new(ShippedSteps),
        }
    }
}
