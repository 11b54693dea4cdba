//! Stopping a run.

use std::time::Duration;

use outlast_core::run::{CancelReason, RunRecord};
use outlast_core::{ErrorCode, RunId};
use outlast_sandbox::{KillOutcome, LaunchOutcome};
use outlast_store::{CancelOutcome, StoreError};

use crate::{Host, fail};

/// What became of a Stop.
#[derive(Debug, Clone)]
pub struct CancelReport {
    /// The run as it is now.
    pub run: RunRecord,
    /// Whether this call recorded the wish. Otherwise it was recorded before, or the run had ended.
    pub recorded: bool,
    /// Whether the run had ended before anybody wished it to.
    pub was_over: bool,
    /// Whether the wish was for want of viewers and there is one: nothing was done.
    pub watched: bool,
}

/// Why a run could not be stopped.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CancelError {
    /// No such run.
    #[error("there is no run {0:?}")]
    NotFound(RunId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl CancelError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            CancelError::NotFound(_) => ErrorCode::RunNotFound,
            CancelError::Store(error) => error.code(),
        }
    }
}

impl Host {
    /// Records the wish and carries it out, for at most `patience`. The answer tells what is so by then.
    pub async fn cancel(
        &self,
        run_id: &RunId,
        reason: CancelReason,
        patience: Duration,
    ) -> Result<CancelReport, CancelError> {
        let report = self.request_cancel(run_id, reason).await?;
        if report.was_over || report.watched {
            return Ok(report);
        }
        let run = self.carry_out_cancel(report.run, patience).await?;
        Ok(CancelReport { run, ..report })
    }

    /// Records the wish: a person's in any case, one for want of viewers only where nobody watches. Durable when it
    /// returns: some host will carry it out, whatever becomes of this one.
    pub async fn request_cancel(
        &self,
        run_id: &RunId,
        reason: CancelReason,
    ) -> Result<CancelReport, CancelError> {
        self.request_cancel_if(run_id, reason, (reason != CancelReason::User).then_some(Duration::ZERO)).await
    }

    /// Records the wish, on the condition that nobody has watched for so long.
    pub(crate) async fn request_cancel_if(
        &self,
        run_id: &RunId,
        reason: CancelReason,
        detached_for: Option<Duration>,
    ) -> Result<CancelReport, CancelError> {
        let host = &self.inner;
        let mut hold = host.hold();
        let outcome = loop {
            fail::point("cancel.before");
            match host.store.request_cancel(&host.tenant, run_id, reason, detached_for).await {
                Ok(outcome) => break outcome,
                Err(error) => hold.wait(error).await?,
            }
        };
        hold.done();
        fail::point("cancel.after");
        let (run, recorded, was_over, watched) = match outcome {
            CancelOutcome::NotFound => return Err(CancelError::NotFound(run_id.clone())),
            CancelOutcome::Terminal(run) => (run, false, true, false),
            CancelOutcome::Watched(run) => (run, false, false, true),
            CancelOutcome::Recorded(run) => (run, true, false, false),
            CancelOutcome::AlreadyRequested(run) => (run, false, false, false),
        };
        Ok(CancelReport { run: *run, recorded, was_over, watched })
    }

    /// Kills the fence of a run whose cancel is recorded, at once where this host reaches it (killing is monotone and needs
    /// no claim), and brings the run to its end, or waits until its driver has, for at most `patience`. Answers with the
    /// run as it is then.
    pub async fn carry_out_cancel(
        &self,
        run: RunRecord,
        patience: Duration,
    ) -> Result<RunRecord, CancelError> {
        let host = &self.inner;
        let run_id = &run.run_id;
        self.kill(&run).await;
        let mut keeper = self.keep_run(run_id);
        let clock = host.ports.clock.clone();
        tokio::select! {
            biased;
            () = keeper.ended() => { keeper.end().await; }
            () = clock.sleep(patience) => keeper.hand_over().await,
        }
        host.run(run_id).await?.ok_or_else(|| CancelError::NotFound(run_id.clone()))
    }

    /// Sees to it that no agent of the run lives or will be started, as far as this host reaches. Whoever brings the
    /// run to its end does it again and verifies.
    async fn kill(&self, run: &RunRecord) {
        let provider = &self.inner.provider;
        let Some(instance) = &run.instance_id else {
            return;
        };
        if self.inner.elsewhere(run).is_some() {
            return;
        }
        let latched = provider.latch_cancelled(instance, &run.run_id).await;
        if matches!(latched, Ok(LaunchOutcome::Taken)) {
            return;
        }
        match provider.kill(instance, &run.run_id, self.inner.options.kill_grace).await {
            Ok(KillOutcome::Unverified { cause }) => {
                tracing::warn!(run = %run.run_id, cause, "kill not verified")
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(run = %run.run_id, %error, "the sandbox could not be reached to kill")
            }
        }
    }
}
