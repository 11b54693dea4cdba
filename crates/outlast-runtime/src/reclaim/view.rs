//! What sandboxes there are, for people.

use outlast_core::run::{RunRecord, Status};
use outlast_core::{InstanceId, RunId, ThreadId};
use outlast_store::{Instance, InstanceState, ListInstances, ListRuns, StoreError};
use serde::Serialize;

use crate::Host;

const PAGE: usize = 500;

/// A sandbox that is not gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxView {
    /// Its id.
    pub instance_id: InstanceId,
    /// Its key.
    pub sandbox_key: String,
    /// `creating`, `live` or `destroying`.
    pub state: &'static str,
    /// The thread that it was made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<ThreadId>,
    /// The live run that uses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Who made it.
    pub provider: String,
    /// The machine that it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Whether this host reaches it.
    pub here: bool,
    /// When it was made, in milliseconds since 1970.
    pub created_at: u64,
    /// Whether its workspace is a directory that the user lent, which outlives it.
    pub lent: bool,
    /// When it is to be destroyed, or tried again to be, in milliseconds since 1970; none while a run uses it, and where
    /// it is kept until somebody removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reclaim_at: Option<u64>,
    /// How many attempts to destroy it have failed.
    pub failed_attempts: u32,
    /// Why the last one has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Host {
    /// Every sandbox that is not gone, the oldest first.
    pub async fn sandboxes(&self) -> Result<Vec<SandboxView>, StoreError> {
        let host = &self.inner;
        let mut query = ListInstances { limit: PAGE, ..ListInstances::default() };
        let mut views = Vec::new();
        loop {
            let page = host.store.list_instances(&query).await?;
            query.after = page.last().map(|last| (last.created_at, last.instance_id.clone()));
            let full = page.len() == PAGE;
            for instance in page {
                let run_id = self.user(&instance).await?;
                views.push(self.view_of(instance, run_id));
            }
            if !full {
                return Ok(views);
            }
        }
    }

    fn view_of(&self, instance: Instance, run_id: Option<RunId>) -> SandboxView {
        let here = match (&instance.machine, self.inner.provider.machine()) {
            (Some(machine), Some(here)) => machine == here,
            _ => true,
        };
        let reclaim = instance.reclaim;
        SandboxView {
            instance_id: instance.instance_id,
            sandbox_key: instance.sandbox_key,
            state: instance.state.as_str(),
            thread_id: instance.thread_id,
            run_id,
            provider: instance.provider,
            machine: instance.machine,
            here,
            created_at: instance.created_at,
            lent: instance.lent,
            reclaim_at: reclaim.as_ref().map(|reclaim| reclaim.at),
            failed_attempts: reclaim.as_ref().map_or(0, |reclaim| reclaim.failed),
            error: reclaim.and_then(|reclaim| reclaim.error),
        }
    }

    /// The live run that uses the instance. A thread has at most one.
    async fn user(&self, instance: &Instance) -> Result<Option<RunId>, StoreError> {
        let Some(thread_id) = &instance.thread_id else { return Ok(None) };
        if instance.state == InstanceState::Destroying {
            return Ok(None);
        }
        let query = ListRuns {
            tenant: instance.tenant.clone(),
            thread_id: Some(thread_id.clone()),
            statuses: vec![Status::Running, Status::Interrupted],
            limit: 1,
            ..ListRuns::default()
        };
        let uses = |run: &RunRecord| run.instance_id.as_ref() == Some(&instance.instance_id);
        let runs = self.inner.store.list_runs(&query).await?;
        Ok(runs.into_iter().find(uses).map(|run| run.run_id))
    }
}
