//! Destroying one sandbox.

use std::time::Duration;

use outlast_core::InstanceId;
use outlast_core::decide::ReclaimRefusal;
use outlast_core::run::{EndReason, RunRecord};
use outlast_store::{BeginReclaim, Instance, ListRuns, ReclaimEnd, ReclaimError, StoreError};

use super::ReclaimOutcome;
use crate::{Host, fail};

/// For how long whoever destroys a sandbox has it for itself. Destroying twice does no harm; this only keeps hosts from
/// doing the same work at once.
const LEASE: Duration = Duration::from_secs(120);

impl Host {
    /// Destroys the sandbox of a run that has ended, where its lifecycle does not keep it and no live run uses it.
    pub async fn reclaim_sandbox(&self, run: &RunRecord) -> Result<ReclaimOutcome, StoreError> {
        if run.sandbox_key.is_none() {
            return Ok(ReclaimOutcome::NoSandboxKey);
        }
        let Some(instance) = &run.instance_id else {
            return Ok(ReclaimOutcome::NotFound);
        };
        if !run.status.is_terminal() {
            return Ok(ReclaimOutcome::InUse { run_id: run.run_id.clone() });
        }
        self.destroy_sandbox(instance, false).await
    }

    /// Destroys a sandbox that no live run uses; where it is `forced`, a person's wish, without waiting for its time.
    pub async fn destroy_sandbox(
        &self,
        instance: &InstanceId,
        forced: bool,
    ) -> Result<ReclaimOutcome, StoreError> {
        let host = &self.inner;
        let Some(found) = host.store.instance(instance).await? else {
            return Ok(ReclaimOutcome::NotFound);
        };
        // Before anything else: an id of one provider means nothing, or something else, to another.
        if found.provider != host.provider.name() {
            return Ok(ReclaimOutcome::ProviderMismatch { provider: found.provider });
        }
        if let (Some(machine), Some(here)) = (&found.machine, host.provider.machine())
            && machine != here
        {
            return Ok(ReclaimOutcome::Elsewhere { machine: machine.clone() });
        }
        fail::point("reclaim.begin.before");
        let request =
            BeginReclaim { instance_id: instance.clone(), owner: host.owner.clone(), lease: LEASE, forced };
        let begun = match host.store.begin_reclaim(&request).await {
            Ok(begun) => begun,
            Err(ReclaimError::NotFound(_)) => return Ok(ReclaimOutcome::NotFound),
            Err(ReclaimError::Store(error)) => return Err(error),
            Err(ReclaimError::Refused(refusal)) => {
                return Ok(match refusal {
                    ReclaimRefusal::Gone => ReclaimOutcome::AlreadyGone,
                    ReclaimRefusal::InUse(run_id) => ReclaimOutcome::InUse { run_id },
                    ReclaimRefusal::Kept(remaining) => ReclaimOutcome::Kept { remaining },
                    ReclaimRefusal::Held { .. } => ReclaimOutcome::BeingDestroyed,
                });
            }
        };
        // From here on the thread does not find it any more, whatever becomes of the attempt.
        fail::point("reclaim.begin.after");
        self.kill_what_may_live(&begun).await;
        // Nobody uses it any more, so what the snapshot shows is the workspace's last state.
        let destroyed = match host.checkpoint_before_end(&begun).await {
            Ok(()) => host.provider.destroy(instance).await.map_err(|error| error.to_string()),
            Err(error) if forced => {
                tracing::warn!(%error, %instance, "a sandbox is destroyed without a snapshot, as was asked for");
                host.provider.destroy(instance).await.map_err(|error| error.to_string())
            }
            Err(error) => Err(error),
        };
        fail::point("reclaim.destroyed");
        let (end, outcome) = match destroyed {
            Ok(()) => (ReclaimEnd::Gone, ReclaimOutcome::Destroyed),
            Err(error) => {
                (ReclaimEnd::Failed { error: error.clone() }, ReclaimOutcome::DestroyFailed { error })
            }
        };
        // Not written, it is done again by whoever comes next, and is harmless.
        host.store.end_reclaim(instance, &host.owner, &end).await?;
        fail::point("reclaim.end.after");
        Ok(outcome)
    }

    /// Kills the fences of runs that were ended although it was not known whether all their processes had: that was what
    /// made the sandbox due.
    async fn kill_what_may_live(&self, instance: &Instance) {
        let host = &self.inner;
        let Some(thread_id) = &instance.thread_id else { return };
        let query = ListRuns {
            tenant: instance.tenant.clone(),
            thread_id: Some(thread_id.clone()),
            limit: 100,
            ..ListRuns::default()
        };
        // Where the store cannot tell, destroying may fail, and is then tried again.
        let Ok(runs) = host.store.list_runs(&query).await else { return };
        let unverified = |run: &&RunRecord| {
            run.instance_id.as_ref() == Some(&instance.instance_id)
                && matches!(
                    run.end_reason,
                    Some(EndReason::CancelledUnverified | EndReason::SandboxUnreachable)
                )
        };
        for run in runs.iter().filter(unverified) {
            if let Err(error) = host.provider.kill(&instance.instance_id, &run.run_id, Duration::ZERO).await {
                tracing::warn!(%error, run = %run.run_id, "what a cancelled run has left could not be killed");
            }
        }
    }
}
