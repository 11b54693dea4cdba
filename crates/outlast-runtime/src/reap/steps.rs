//! What a sweep does to a run, exchangeable.

use async_trait::async_trait;
use outlast_core::ErrorCode;
use outlast_core::run::{ClaimToken, RunRecord};

use crate::claim::Held;
use crate::drive::DriveEnd;
use crate::{Host, ReclaimOutcome, RunProbe, SandboxReclaimFailed};

/// What a sweep does to a run. Those that are shipped are the default; tests and embedders put their own in their place.
#[async_trait]
pub trait ReapSteps: Send + Sync + std::fmt::Debug {
    /// Asks whether the run's agent has ended, out of band. Must touch nothing.
    async fn probe(&self, host: &Host, run: &RunRecord) -> RunProbe {
        host.probe(run).await
    }

    /// Drives a claimed run to its end. May be dropped at any await, and is then begun anew by a later sweep.
    async fn drive(&self, host: &Host, claim: ReapClaim) -> Driven {
        claim.drive(host).await
    }

    /// Destroys the sandbox of a run that has ended, where it may go.
    async fn reclaim(&self, host: &Host, run: &RunRecord) -> Result<ReclaimOutcome, SandboxReclaimFailed> {
        match host.reclaim_sandbox(run).await {
            Ok(outcome) => outcome.or_failed(run),
            Err(error) => Err(SandboxReclaimFailed {
                code: error.code(),
                run_id: run.run_id.clone(),
                sandbox_key: run.sandbox_key.clone(),
                message: error.to_string(),
            }),
        }
    }
}

/// The steps that are shipped.
#[derive(Debug, Clone, Copy)]
pub struct ShippedSteps;

#[async_trait]
impl ReapSteps for ShippedSteps {}

/// A run that the sweep has claimed. The claim is renewed for as long as this is there.
#[derive(Debug)]
pub struct ReapClaim {
    pub(super) held: Held,
    pub(super) run: RunRecord,
}

impl ReapClaim {
    /// The run as it was claimed.
    pub fn run(&self) -> &RunRecord {
        &self.run
    }

    /// Proof of the claim, for a drive that writes for itself.
    pub fn token(&self) -> &ClaimToken {
        &self.held.token
    }

    /// Drives it to its end, as the shipped step does.
    pub async fn drive(self, host: &Host) -> Driven {
        match host.inner.drive(self.held, self.run).await {
            DriveEnd::Ended(run) => Driven::Ended(run),
            DriveEnd::Superseded | DriveEnd::LeaseRanOut => Driven::Lost,
            DriveEnd::CannotDrive { code, message } => Driven::Failed { code, message },
            DriveEnd::Store(error) => Driven::Failed { code: error.code(), message: error.to_string() },
        }
    }
}

/// How a drive ended.
#[derive(Debug)]
pub enum Driven {
    /// The run has ended.
    Ended(Box<RunRecord>),
    /// Another host has it by now.
    Lost,
    /// It could not be driven.
    Failed {
        /// The stable code.
        code: ErrorCode,
        /// For people.
        message: String,
    },
}
