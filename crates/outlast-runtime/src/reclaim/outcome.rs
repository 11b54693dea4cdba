//! What became of a sandbox.

use outlast_core::run::RunRecord;
use outlast_core::{ErrorCode, InstanceId, RunId, ThreadId};
use serde::Serialize;

/// What became of the wish to destroy a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum ReclaimOutcome {
    /// The provider says that it is gone.
    Destroyed,
    /// It may still be there. The thread does not find it any more; it is tried again.
    DestroyFailed {
        /// Why.
        error: String,
    },
    /// The run never had a sandbox.
    NoSandboxKey,
    /// Nothing is recorded of it.
    NotFound,
    /// Another provider made it. Nothing was touched.
    ProviderMismatch {
        /// Which.
        provider: String,
    },
    /// Its lifecycle keeps it. Nothing was touched.
    Kept {
        /// For how many more milliseconds; none: until somebody removes it.
        remaining: Option<u64>,
    },
    /// A live run uses it. Nothing was touched.
    InUse {
        /// The run.
        run_id: RunId,
    },
    /// Somebody else is destroying it.
    BeingDestroyed,
    /// It was gone already.
    AlreadyGone,
    /// It is on a machine that this host does not reach. It is destroyed by a host there.
    Elsewhere {
        /// The machine.
        machine: String,
    },
}

impl ReclaimOutcome {
    /// Whether the sandbox may still be there although it should not be.
    pub fn has_failed(&self) -> bool {
        matches!(self, ReclaimOutcome::DestroyFailed { .. } | ReclaimOutcome::Elsewhere { .. })
    }

    /// The outcome, or an error where the sandbox of this run may still be there although it should not be.
    pub fn or_failed(self, run: &RunRecord) -> Result<ReclaimOutcome, SandboxReclaimFailed> {
        let (code, message) = match &self {
            ReclaimOutcome::DestroyFailed { error } => (ErrorCode::SandboxReclaimFailed, error.clone()),
            ReclaimOutcome::Elsewhere { machine } => (
                ErrorCode::SandboxUnreachable,
                format!("it is on another machine ({machine}), where it is destroyed once a host reaches it"),
            ),
            _ => return Ok(self),
        };
        Err(SandboxReclaimFailed {
            code,
            run_id: run.run_id.clone(),
            sandbox_key: run.sandbox_key.clone(),
            message,
        })
    }
}

/// A run has ended, and its sandbox may still be there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the sandbox of run {run_id:?} may still be there: {message}")]
pub struct SandboxReclaimFailed {
    /// The stable code.
    pub code: ErrorCode,
    /// The run.
    pub run_id: RunId,
    /// The sandbox.
    pub sandbox_key: Option<String>,
    /// Why, for people.
    pub message: String,
}

/// What became of one sandbox that was due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReclaimedSandbox {
    /// The sandbox.
    pub instance_id: InstanceId,
    /// Its key.
    pub sandbox_key: String,
    /// Its thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<ThreadId>,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: ReclaimOutcome,
}

/// What became of the sandboxes that were due.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReclaimResult {
    /// How many were due.
    pub considered: usize,
    /// How many are gone now.
    pub destroyed: usize,
    /// How many may still be there.
    pub failed: usize,
    /// Each of them.
    pub sandboxes: Vec<ReclaimedSandbox>,
    /// Why they could not be listed, or not all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl ReclaimResult {
    pub(super) fn add(&mut self, sandbox: ReclaimedSandbox) {
        self.considered += 1;
        self.destroyed +=
            usize::from(matches!(sandbox.outcome, ReclaimOutcome::Destroyed | ReclaimOutcome::AlreadyGone));
        self.failed += usize::from(sandbox.outcome.has_failed());
        self.sandboxes.push(sandbox);
    }

    /// Whether the listing or a sandbox failed.
    pub fn has_failed(&self) -> bool {
        self.error.is_some() || self.failed > 0
    }
}
