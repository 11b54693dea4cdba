//! A run whose agent has ended, or was lost.

use std::pin::pin;
use std::time::Duration;

use outlast_core::ErrorCode;
use outlast_core::decide::{ClaimRefusal, STALLS};
use outlast_core::run::{ClaimToken, Purpose, RunRecord};
use outlast_store::ClaimError;

use super::{Driven, ReapClaim, ReapError, ReapOptions, ReapOutcome, ReapRun};
use crate::drive::GivenUp;
use crate::{Host, SandboxReclaimFailed, fail};

/// How a drive went within its budget.
pub(super) enum Within {
    /// It ended.
    Driven(Driven),
    /// It did not end, or made no progress. The claim is still there.
    Over,
}

impl Host {
    /// Claims the run, on the condition that still nobody watches it, and drives it to its end.
    pub(super) async fn finalize(&self, run: &RunRecord, options: &ReapOptions) -> ReapRun {
        let claim = match self.claim_once(run, Purpose::Drive, Some(Duration::ZERO)).await {
            Ok(claim) => claim,
            Err(entry) => return entry,
        };
        let token = claim.held.token.clone();
        match self.drive_within(claim, options, false).await {
            Within::Driven(Driven::Ended(run)) => self.after_end(ReapOutcome::Finalized, &run, options).await,
            Within::Driven(Driven::Lost) => ReapRun::new(&run.run_id, ReapOutcome::NotClaimed)
                .because(ErrorCode::ClaimLost, "another host took the run over"),
            Within::Driven(Driven::Failed { code, message }) => {
                ReapRun::new(&run.run_id, ReapOutcome::Failed).because(code, message)
            }
            Within::Over => self.stalled(run, &token, options).await,
        }
    }

    /// It made no progress: it is left to the next sweep, and ended without its rest the third time.
    async fn stalled(&self, run: &RunRecord, token: &ClaimToken, options: &ReapOptions) -> ReapRun {
        let entry = ReapRun::new(&run.run_id, ReapOutcome::BudgetExceeded);
        let budget = options.run_budget;
        fail::point("reap.stall.before");
        match self.inner.store.note_stall(token).await {
            Err(error) => ReapRun::new(&run.run_id, ReapOutcome::Failed)
                .because(ErrorCode::StoreUnavailable, format!("a stall could not be noted: {error}")),
            Ok(count) if count < STALLS => entry.because(
                ErrorCode::BudgetExceeded,
                format!("no progress for {budget:?} (time {count} of {STALLS}); the next sweep tries again"),
            ),
            Ok(_) => match self.claim_once(run, Purpose::Drive, None).await {
                Err(entry) => entry,
                Ok(claim) => match self.give_up(claim, GivenUp::NoProgress).await {
                    Err(entry) => entry,
                    Ok(run) => {
                        let entry = self.after_end(ReapOutcome::BudgetExceeded, &run, options).await;
                        ReapRun { terminalized_anyway: true, ..entry }
                    }
                },
            },
        }
    }

    /// Claims without waiting for a store that is away: the next sweep comes soon.
    pub(super) async fn claim_once(
        &self,
        run: &RunRecord,
        purpose: Purpose,
        detached_for: Option<Duration>,
    ) -> Result<ReapClaim, ReapRun> {
        fail::point("reap.claim.before");
        let claimed = self.inner.claim_once(&run.run_id, purpose, detached_for).await;
        fail::point("reap.claim.after");
        match claimed {
            Ok((held, run)) => Ok(ReapClaim { held, run }),
            Err(ClaimError::Refused(refusal)) => {
                let entry = ReapRun::new(&run.run_id, ReapOutcome::NotClaimed);
                let status = match &refusal {
                    ClaimRefusal::TerminalRun(status) => Some(*status),
                    _ => None,
                };
                Err(ReapRun { status, ..entry }.because(refusal.code(), refusal))
            }
            Err(ClaimError::Store(error)) => {
                Err(ReapRun::new(&run.run_id, ReapOutcome::Failed).because(error.code(), error))
            }
        }
    }

    /// Drives until the end, or until the budget is over: with `hard` after that time, else once the log has not grown
    /// for that time.
    pub(super) async fn drive_within(&self, claim: ReapClaim, options: &ReapOptions, hard: bool) -> Within {
        let clock = &self.inner.ports.clock;
        let (run_id, mut tail) = (claim.run.run_id.clone(), claim.run.tail);
        let mut driving = pin!(options.steps.drive(self, claim));
        loop {
            tokio::select! {
                biased;
                driven = &mut driving => return Within::Driven(driven),
                () = clock.sleep(options.run_budget) => {}
            }
            if hard {
                return Within::Over;
            }
            match self.inner.store.run(&self.inner.tenant, &run_id).await {
                Ok(Some(run)) if run.tail > tail => tail = run.tail,
                // A store that does not answer is no progress either.
                Ok(_) | Err(_) => return Within::Over,
            }
        }
    }

    /// Ends a claimed run without its journal.
    pub(super) async fn give_up(&self, claim: ReapClaim, why: GivenUp) -> Result<Box<RunRecord>, ReapRun> {
        let run_id = claim.run.run_id.clone();
        match Box::pin(self.inner.give_up(claim.held, claim.run, why)).await {
            Driven::Ended(run) => Ok(run),
            Driven::Lost => Err(ReapRun::new(&run_id, ReapOutcome::NotClaimed)
                .because(ErrorCode::ClaimLost, "another host took the run over")),
            Driven::Failed { code, message } => {
                Err(ReapRun::new(&run_id, ReapOutcome::Failed).because(code, message))
            }
        }
    }

    /// The entry of a run that has ended, and the end of its sandbox, where it is due.
    pub(super) async fn after_end(
        &self,
        outcome: ReapOutcome,
        run: &RunRecord,
        options: &ReapOptions,
    ) -> ReapRun {
        let entry = ReapRun::ended(outcome, run);
        self.inner.checkpoint_after(run).await;
        fail::point("reap.reclaim.before");
        match options.steps.reclaim(self, run).await {
            Ok(_) => entry,
            Err(SandboxReclaimFailed { code, sandbox_key, message, .. }) => {
                let error = ReapError { code, message, sandbox_key };
                ReapRun { outcome: ReapOutcome::ReclaimFailed, error: Some(error), ..entry }
            }
        }
    }
}
