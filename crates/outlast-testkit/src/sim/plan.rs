//! How hard a simulation is.

use std::time::Duration;

/// What is simulated, and how often what goes wrong.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Hosts at a time; one that dies is replaced.
    pub hosts: usize,
    /// Runs that are started.
    pub runs: usize,
    /// Viewers of each run.
    pub viewers: usize,
    /// How long things go wrong; after that the rest must come to its end by itself.
    pub trouble: Duration,
    /// How long it may take after that.
    pub calm: Duration,
    /// How often in a thousand an operation of the store fails without effect.
    pub fail: u32,
    /// How often in a thousand an operation of the store is carried out and its answer lost.
    pub lose: u32,
    /// How often in a thousand an operation takes its time.
    pub delay: u32,
    /// How often in a thousand a sandbox does not answer.
    pub sandbox_fail: u32,
    /// How long the leases run.
    pub lease: Duration,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            hosts: 3,
            runs: 4,
            viewers: 2,
            trouble: Duration::from_secs(120),
            calm: Duration::from_secs(900),
            fail: 20,
            lose: 20,
            delay: 60,
            sandbox_fail: 10,
            lease: Duration::from_secs(10),
        }
    }
}
