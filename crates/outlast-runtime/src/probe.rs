//! Asking a run's sandbox what it says, without driving the run.

use outlast_core::run::RunRecord;
use serde::Serialize;

use crate::Host;

/// What the sandbox says of a run's agent. Found out read only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "camelCase")]
pub enum RunProbe {
    /// Its exit is recorded.
    #[serde(rename_all = "camelCase")]
    Finished {
        /// The exit status.
        exit_code: i32,
    },
    /// It works, or is about to.
    Producing,
    /// It was not started.
    NotLaunched,
    /// It and its shim are dead and left no exit behind.
    Lost,
    /// The sandbox could not tell.
    Unknown {
        /// Why.
        cause: String,
    },
}

impl Host {
    /// Probes the run. Touches nothing.
    pub async fn probe(&self, run: &RunRecord) -> RunProbe {
        let provider = &self.inner.provider;
        let Some(instance) = &run.instance_id else {
            return RunProbe::NotLaunched;
        };
        if self.inner.elsewhere(run).is_some() {
            return RunProbe::Unknown { cause: "its sandbox is on another machine".to_owned() };
        }
        use outlast_core::journal::latch::{Latch, LatchState};
        match provider.facts(instance, &run.run_id, &run.exit_secret).await {
            Err(error) => RunProbe::Unknown { cause: error.to_string() },
            Ok(facts) => match (facts.exit, facts.shim_alive, facts.latch) {
                _ if !facts.exists => RunProbe::Unknown { cause: "its sandbox is gone".to_owned() },
                (Some(exit), _, _) => RunProbe::Finished { exit_code: exit.exit },
                (None, true, _) => RunProbe::Producing,
                (None, false, LatchState::Free | LatchState::Taken(Latch::Cancelled)) => {
                    RunProbe::NotLaunched
                }
                (None, false, LatchState::Torn | LatchState::Taken(Latch::Launch(_))) => RunProbe::Lost,
            },
        }
    }
}
