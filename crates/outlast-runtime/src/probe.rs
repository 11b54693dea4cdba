//! Asking a run's sandbox what it says, without driving the run.

use outlast_core::journal::latch::{Latch, LatchState};
use outlast_core::run::RunRecord;
use outlast_sandbox::{EXIT_PROBE_BYTES, RunExit, probe_run_exit};
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
        let ask = || probe_run_exit(&**provider, instance, &run.run_id, &run.exit_secret, EXIT_PROBE_BYTES);
        match ask().await {
            RunExit::Finished(exit_code) => return RunProbe::Finished { exit_code },
            RunExit::Unknown { cause } => return RunProbe::Unknown { cause },
            RunExit::Producing => {}
        }
        match provider.facts(instance, &run.run_id, &run.exit_secret).await {
            Err(error) => RunProbe::Unknown { cause: error.to_string() },
            Ok(facts) => match (facts.shim_alive, facts.latch) {
                (true, _) => RunProbe::Producing,
                (false, LatchState::Free | LatchState::Taken(Latch::Cancelled)) => RunProbe::NotLaunched,
                // Dead, and what it has not said by now it never will: the sentinel may have come after the first look.
                (false, LatchState::Torn | LatchState::Taken(Latch::Launch(_))) => match ask().await {
                    RunExit::Finished(exit_code) => RunProbe::Finished { exit_code },
                    RunExit::Unknown { cause } => RunProbe::Unknown { cause },
                    RunExit::Producing => RunProbe::Lost,
                },
            },
        }
    }
}
