//! What a sweep has done.

use std::collections::BTreeMap;

use outlast_core::run::{RunRecord, Status};
use outlast_core::{ErrorCode, RunId};
use serde::Serialize;

/// What became of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReapOutcome {
    /// Its agent had ended, or was lost: it was driven to its end.
    Finalized,
    /// Its time was up: it is ended, or its driver has been told to end it. Its status tells which end it was.
    Expired,
    /// Its agent works. Nothing was touched.
    Producing,
    /// Its sandbox could not tell. Nothing was touched.
    Unknown,
    /// Its agent had ended, and it made no progress for as long as a sweep waits.
    BudgetExceeded,
    /// Another host has it, or a viewer came back.
    NotClaimed,
    /// It has ended, and its sandbox may still be there. The attempt is repeated.
    ReclaimFailed,
    /// Something went wrong; the next sweep tries again.
    Failed,
}

impl ReapOutcome {
    /// Every outcome.
    pub const ALL: [ReapOutcome; 8] = [
        ReapOutcome::Finalized,
        ReapOutcome::Expired,
        ReapOutcome::Producing,
        ReapOutcome::Unknown,
        ReapOutcome::BudgetExceeded,
        ReapOutcome::NotClaimed,
        ReapOutcome::ReclaimFailed,
        ReapOutcome::Failed,
    ];

    /// The outcome as it is on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            ReapOutcome::Finalized => "finalized",
            ReapOutcome::Expired => "expired",
            ReapOutcome::Producing => "producing",
            ReapOutcome::Unknown => "unknown",
            ReapOutcome::BudgetExceeded => "budget-exceeded",
            ReapOutcome::NotClaimed => "not-claimed",
            ReapOutcome::ReclaimFailed => "reclaim-failed",
            ReapOutcome::Failed => "failed",
        }
    }

    /// Whether a person should look at the run.
    pub fn needs_attention(self) -> bool {
        matches!(
            self,
            ReapOutcome::Unknown
                | ReapOutcome::BudgetExceeded
                | ReapOutcome::ReclaimFailed
                | ReapOutcome::Failed
        )
    }
}

/// What went wrong with a run, or with the sweep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReapError {
    /// The stable code.
    pub code: ErrorCode,
    /// For people.
    pub message: String,
    /// The sandbox that may still be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox_key: Option<String>,
}

impl ReapError {
    /// An error that leaves no sandbox behind.
    pub fn new(code: ErrorCode, message: impl std::fmt::Display) -> ReapError {
        ReapError { code, message: message.to_string(), sandbox_key: None }
    }
}

/// What became of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReapRun {
    /// The run.
    pub run_id: RunId,
    /// What became of it.
    pub outcome: ReapOutcome,
    /// Its status, where the sweep knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// The agent's exit status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Set where the run was ended without the rest of what its agent had printed, since it made no progress.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub terminalized_anyway: bool,
    /// What went wrong, if anything did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ReapError>,
}

impl ReapRun {
    pub(super) fn new(run_id: &RunId, outcome: ReapOutcome) -> ReapRun {
        ReapRun {
            run_id: run_id.clone(),
            outcome,
            status: None,
            exit_code: None,
            terminalized_anyway: false,
            error: None,
        }
    }

    pub(super) fn ended(outcome: ReapOutcome, run: &RunRecord) -> ReapRun {
        ReapRun { status: Some(run.status), exit_code: run.exit_code, ..ReapRun::new(&run.run_id, outcome) }
    }

    pub(super) fn because(self, code: ErrorCode, message: impl std::fmt::Display) -> ReapRun {
        ReapRun { error: Some(ReapError::new(code, message)), ..self }
    }
}

/// What a sweep has done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReapResult {
    /// How many runs were classified.
    pub considered: usize,
    /// How many of their journals were asked.
    pub probed: usize,
    /// How many runs had each outcome. Every outcome is there.
    pub outcomes: BTreeMap<ReapOutcome, usize>,
    /// Each run.
    pub runs: Vec<ReapRun>,
    /// Why the runs could not be listed, or not all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ReapError>,
}

impl ReapResult {
    pub(super) fn empty() -> ReapResult {
        let outcomes = ReapOutcome::ALL.map(|outcome| (outcome, 0)).into();
        ReapResult { outcomes, ..ReapResult::default() }
    }

    pub(super) fn add(&mut self, run: ReapRun) {
        self.considered += 1;
        *self.outcomes.entry(run.outcome).or_default() += 1;
        self.runs.push(run);
    }

    /// How many runs had this outcome.
    pub fn count(&self, outcome: ReapOutcome) -> usize {
        self.outcomes.get(&outcome).copied().unwrap_or(0)
    }

    /// How many runs had which outcome, for people: `1 finalized, 3 producing`.
    pub fn summary(&self) -> String {
        let counts = self.outcomes.iter().filter(|(_, count)| **count > 0);
        let counts: Vec<String> =
            counts.map(|(outcome, count)| format!("{count} {}", outcome.as_str())).collect();
        counts.join(", ")
    }

    /// Whether the listing, a run or a sandbox failed: what a scheduler should tell somebody.
    pub fn has_failed(&self) -> bool {
        self.error.is_some()
            || self.count(ReapOutcome::Failed) > 0
            || self.count(ReapOutcome::ReclaimFailed) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_the_wire() {
        let mut result = ReapResult::empty();
        let run = RunId::new("r").expect("id");
        let failed = ReapRun::new(&run, ReapOutcome::ReclaimFailed).because(ErrorCode::Internal, "no");
        let error = failed.error.map(|error| ReapError { sandbox_key: Some("k".into()), ..error });
        result.add(ReapRun {
            status: Some(Status::Completed),
            exit_code: Some(0),
            error,
            ..ReapRun::new(&run, ReapOutcome::ReclaimFailed)
        });
        let json = serde_json::to_value(&result).expect("json");
        assert_eq!(
            json,
            serde_json::json!({
                "considered": 1, "probed": 0,
                "outcomes": {
                    "finalized": 0, "expired": 0, "producing": 0, "unknown": 0, "budget-exceeded": 0,
                    "not-claimed": 0, "reclaim-failed": 1, "failed": 0,
                },
                "runs": [{
                    "runId": "r", "outcome": "reclaim-failed", "status": "completed", "exitCode": 0,
                    "error": {"code": "internal", "message": "no", "sandboxKey": "k"},
                }],
            })
        );
        for outcome in ReapOutcome::ALL {
            assert_eq!(serde_json::to_value(outcome).expect("json"), outcome.as_str());
        }
    }
}
