//! A run whose time is up.

use std::time::Duration;

use outlast_core::ErrorCode;
use outlast_core::decide::Reach;
use outlast_core::run::{CancelReason, Purpose, RunRecord, Status};
use outlast_store::CancelOutcome;

use super::finalize::Within;
use super::{Driven, ReapOptions, ReapOutcome, ReapRun};
use crate::drive::GivenUp;
use crate::{Host, fail};

/// How often a run that another host is to end is looked at.
const LOOK: Duration = Duration::from_millis(200);

impl Host {
    /// Records the cancel, on the condition that nobody has watched the run for as long as it may go on like that, and
    /// brings the run to its end.
    pub(super) async fn expire(&self, run: &RunRecord, reach: Reach, options: &ReapOptions) -> ReapRun {
        let host = &self.inner;
        let ttl = match run.status {
            Status::Interrupted => options.interrupted_ttl,
            _ => options.ttl.or_else(|| run.detached_ttl.map(Duration::from_millis)),
        };
        fail::point("reap.cancel.before");
        let outcome = host
            .store
            .request_cancel(&host.tenant, &run.run_id, CancelReason::Ttl, ttl.or(Some(Duration::ZERO)))
            .await;
        fail::point("reap.cancel.after");
        let not_claimed = ReapRun::new(&run.run_id, ReapOutcome::NotClaimed);
        match outcome {
            Ok(CancelOutcome::Recorded(run) | CancelOutcome::AlreadyRequested(run)) => {
                self.bring_to_end(*run, reach, options).await
            }
            Ok(CancelOutcome::Watched(_)) => {
                not_claimed.because(ErrorCode::Superseded, "somebody watches the run again")
            }
            Ok(CancelOutcome::Terminal(run)) => ReapRun { status: Some(run.status), ..not_claimed }
                .because(ErrorCode::TerminalRun, "the run has ended meanwhile"),
            Ok(CancelOutcome::NotFound) => {
                not_claimed.because(ErrorCode::RunNotFound, "there is no such run")
            }
            Err(error) => ReapRun::new(&run.run_id, ReapOutcome::Failed).because(error.code(), error),
        }
    }

    /// Ends a run whose cancel is on the record.
    pub(super) async fn bring_to_end(&self, run: RunRecord, reach: Reach, options: &ReapOptions) -> ReapRun {
        if run.driver.is_some() || reach == Reach::Elsewhere {
            return self.ended_by_another(&run, options).await;
        }
        let claim = match self.claim_once(&run, Purpose::End, None).await {
            Ok(claim) => claim,
            // Somebody was faster, and does the same.
            Err(entry) if entry.outcome == ReapOutcome::NotClaimed => {
                return self.ended_by_another(&run, options).await;
            }
            Err(entry) => return entry,
        };
        if reach == Reach::Nobody {
            return match self.give_up(claim, GivenUp::Unreachable).await {
                Err(entry) => entry,
                Ok(run) => {
                    let why = "no live host reaches its sandbox; it is destroyed when one does";
                    let entry = ReapRun::ended(ReapOutcome::Expired, &run);
                    let mut entry = entry.because(ErrorCode::SandboxUnreachable, why);
                    if let Some(error) = &mut entry.error {
                        error.sandbox_key.clone_from(&run.sandbox_key);
                    }
                    entry
                }
            };
        }
        let token = claim.held.token.clone();
        match self.drive_within(claim, options, true).await {
            Within::Driven(Driven::Ended(run)) => self.after_end(ReapOutcome::Expired, &run, options).await,
            Within::Driven(Driven::Lost) => self.ended_by_another(&run, options).await,
            Within::Driven(Driven::Failed { code, message }) => {
                ReapRun::new(&run.run_id, ReapOutcome::Failed).because(code, message)
            }
            Within::Over => {
                self.inner.release(&token).await;
                let claim = match self.claim_once(&run, Purpose::End, None).await {
                    Ok(claim) => claim,
                    Err(entry) => return entry,
                };
                match self.give_up(claim, GivenUp::Unverified(options.run_budget)).await {
                    Err(entry) => entry,
                    Ok(run) => self.after_end(ReapOutcome::Expired, &run, options).await,
                }
            }
        }
    }

    /// Another host ends it. That is waited for, and counts as expired in any case: the cancel is durable.
    async fn ended_by_another(&self, run: &RunRecord, options: &ReapOptions) -> ReapRun {
        let host = &self.inner;
        let began = host.ports.clock.boot_ms();
        loop {
            match host.store.run(&host.tenant, &run.run_id).await {
                Ok(Some(now)) if now.status.is_terminal() => {
                    return ReapRun::ended(ReapOutcome::Expired, &now);
                }
                Ok(None) => break,
                Ok(Some(_)) | Err(_) => {}
            }
            if host.ports.clock.boot_ms() - began >= outlast_core::duration::millis(options.run_budget) {
                break;
            }
            host.ports.clock.sleep(LOOK).await;
        }
        ReapRun { status: Some(run.status), ..ReapRun::new(&run.run_id, ReapOutcome::Expired) }
    }
}
