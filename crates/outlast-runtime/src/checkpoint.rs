//! When a workspace is snapshotted, and when it is made anew from a snapshot.

use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast_core::ledger::Trigger;
use outlast_core::run::{Phase, Reuse, RunRecord};
use outlast_core::{InstanceId, ThreadId};
use outlast_session::workspace::{RestoreOptions, SnapshotOptions};
use outlast_session::{CheckpointError, CheckpointOptions, Checkpointed, RestoreWorkspaceError};
use outlast_store::{Instance, ListRuns, RecordsError, StoreError};

use crate::Host;
use crate::host::Inner;
use crate::notice::Notice;

/// When the workspaces of threads are snapshotted without anybody asking. Directories that users lent never are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckpointWhen {
    /// After each run, and before the sandbox is destroyed.
    RunEnd,
    /// Before the sandbox is destroyed.
    Idle,
    /// Never: what is in a workspace goes with its sandbox.
    Manual,
}

/// How workspaces are snapshotted.
#[derive(Debug, Clone)]
pub struct WorkspaceOptions {
    /// When.
    pub checkpoint: CheckpointWhen,
    /// Patterns as in `.gitignore`: what is left out.
    pub exclude: Vec<String>,
    /// Takes also files that usually hold secrets.
    pub include_secrets: bool,
    /// Leaves out what the tree's `.gitignore` files leave out.
    pub gitignore: bool,
    /// Where it is remembered what files held, so that only those are read again that have changed. None: nowhere.
    pub cache: Option<PathBuf>,
}

impl Default for WorkspaceOptions {
    fn default() -> Self {
        WorkspaceOptions {
            checkpoint: CheckpointWhen::RunEnd,
            exclude: Vec::new(),
            include_secrets: false,
            gitignore: false,
            cache: None,
        }
    }
}

/// How often object storage is asked again, a second apart, before a workspace counts as not restorable.
const RESTORE_ATTEMPTS: u32 = 10;

impl Host {
    /// Snapshots a directory as the thread's workspace and records it. `own`: the directory is the workspace of the thread's
    /// own sandbox, in which nobody writes but its runs.
    pub async fn checkpoint(
        &self,
        thread: &ThreadId,
        root: &Path,
        trigger: Trigger,
        own: bool,
        adjust: impl FnOnce(&mut SnapshotOptions),
    ) -> Result<Checkpointed, CheckpointError> {
        let host = &self.inner;
        let mut snapshot = host.snapshot_options(thread, &cache_name(root)).await?;
        adjust(&mut snapshot);
        let options = CheckpointOptions {
            trigger,
            run_id: None,
            quiescent: own,
            create: true,
            unchanged: true,
            snapshot,
        };
        let made = host.sessions().await?.checkpoint(&host.tenant, thread, root, &options).await?;
        made.ok_or_else(|| StoreError::Unusable { message: "internal error: no snapshot".to_owned() }.into())
    }

    /// The workspace of the thread's sandbox, where it has one on this machine.
    pub async fn thread_workspace(
        &self,
        thread: &ThreadId,
    ) -> Result<Option<(PathBuf, Instance)>, StoreError> {
        let host = &self.inner;
        for run in host.runs_of(thread).await? {
            let Some(id) = &run.instance_id else { continue };
            let Some(instance) = host.store.instance(id).await? else { continue };
            let usable = matches!(instance.state, outlast_store::InstanceState::Live);
            let here = instance.machine.as_deref().is_none_or(|machine| Some(machine) == self.machine());
            if usable && here && instance.provider == host.provider.name() {
                let lent = run.spec.workspace.as_ref().map(|workspace| workspace.path.as_str());
                return Ok(Some((host.provider.paths(id, lent).workspace, instance)));
            }
        }
        Ok(None)
    }
}

impl Inner {
    /// The thread's latest runs, the newest first.
    async fn runs_of(&self, thread: &ThreadId) -> Result<Vec<RunRecord>, StoreError> {
        let query = ListRuns {
            tenant: self.tenant.clone(),
            thread_id: Some(thread.clone()),
            limit: 20,
            ..ListRuns::default()
        };
        self.store.list_runs(&query).await
    }

    async fn snapshot_options(&self, thread: &ThreadId, cache: &str) -> Result<SnapshotOptions, StoreError> {
        let policy = &self.options.workspace;
        Ok(SnapshotOptions {
            // The ledger names it, so no collection takes it.
            base: self.workspace_now(thread).await?.map(|now| now.reference),
            cache: policy.cache.as_ref().map(|directory| directory.join(cache)),
            exclude: policy.exclude.clone(),
            include_secrets: policy.include_secrets,
            gitignore: policy.gitignore,
            ..SnapshotOptions::default()
        })
    }

    /// After a run: where its workspace is the thread's own, a snapshot of it. A failure fails nothing: before the sandbox is
    /// destroyed, it is tried again.
    pub(crate) async fn checkpoint_after(&self, run: &RunRecord) {
        if self.options.workspace.checkpoint != CheckpointWhen::RunEnd || !is_own(run) {
            return;
        }
        let Some(instance) = &run.instance_id else { return };
        if run.phase != Phase::Launched || self.elsewhere(run).is_some() {
            return;
        }
        let root = self.provider.paths(instance, None).workspace;
        let made = self.checkpoint_own(run, instance, &root, Trigger::RunEnded, true).await;
        match made {
            Ok(Some(made)) => self.notices.tell(Notice::Checkpointed {
                run_id: run.run_id.clone(),
                reference: made.snapshot.reference,
                seq: made.seq,
            }),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, run = %run.run_id, "the workspace could not be snapshotted after the run");
            }
        }
    }

    /// Before a sandbox is destroyed: where its workspace is the thread's own and has changed since the last snapshot,
    /// another one. An error means that it must not be destroyed yet.
    pub(crate) async fn checkpoint_before_end(&self, instance: &Instance) -> Result<(), String> {
        if self.options.workspace.checkpoint == CheckpointWhen::Manual || instance.lent {
            return Ok(());
        }
        let Some(thread) = &instance.thread_id else { return Ok(()) };
        let runs = self.runs_of(thread).await.map_err(|error| error.to_string())?;
        // A sandbox in which nothing was ever launched may be one that is only half restored.
        let used = |run: &&RunRecord| {
            run.instance_id.as_ref() == Some(&instance.instance_id)
                && run.phase == Phase::Launched
                && is_own(run)
        };
        let Some(run) = runs.iter().find(used) else { return Ok(()) };
        match self.provider.exists(&instance.instance_id).await {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        }
        let root = self.provider.paths(&instance.instance_id, None).workspace;
        match self.checkpoint_own(run, &instance.instance_id, &root, Trigger::Idle, false).await {
            Ok(_) => Ok(()),
            // Nothing of the thread is to last.
            Err(CheckpointError::Records(RecordsError::Refused(
                outlast_core::decide::RecordsRefusal::SessionDeleted(_),
            ))) => Ok(()),
            Err(error) => Err(format!("its workspace could not be snapshotted: {error}")),
        }
    }

    async fn checkpoint_own(
        &self,
        run: &RunRecord,
        instance: &InstanceId,
        root: &Path,
        trigger: Trigger,
        unchanged: bool,
    ) -> Result<Option<Checkpointed>, CheckpointError> {
        let snapshot = self.snapshot_options(&run.thread_id, instance.as_str()).await?;
        let options = CheckpointOptions {
            trigger,
            run_id: Some(run.run_id.clone()),
            quiescent: true,
            create: false,
            unchanged,
            snapshot,
        };
        self.sessions().await?.checkpoint(&self.tenant, &run.thread_id, root, &options).await
    }

    /// Gives a sandbox that was just made the thread's workspace, as the last snapshot has it. The sandbox counts as live only
    /// after that, so whoever dies on the way is succeeded by one who begins anew.
    pub(crate) async fn restore_into(&self, run: &RunRecord, instance: &InstanceId) -> Result<(), String> {
        if !is_own(run) || self.options.workspace.checkpoint == CheckpointWhen::Manual {
            return Ok(());
        }
        let mut attempt = 1;
        loop {
            match self.try_restore(run, instance).await {
                Ok(()) => return Ok(()),
                Err(error) if attempt == RESTORE_ATTEMPTS => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, run = %run.run_id, attempt, "the workspace could not be restored");
                    attempt += 1;
                    self.ports.clock.sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }

    async fn try_restore(&self, run: &RunRecord, instance: &InstanceId) -> Result<(), String> {
        let now = self.workspace_now(&run.thread_id).await.map_err(|error| error.to_string())?;
        let Some(now) = now else { return Ok(()) };
        let root = self.provider.paths(instance, None).workspace;
        let options = RestoreOptions::new(self.ports.clock.wall_ms());
        let sessions = self.sessions().await.map_err(|error| error.to_string())?;
        // A snapshot that was chosen since is another restore.
        let id = (format!("{instance}/{}", now.reference.hex()), Some(run.run_id.clone()));
        let restored = sessions
            .restore_workspace(&self.tenant, &run.thread_id, &now.reference, &root, &options, id)
            .await;
        match restored {
            Ok(_) => {
                let (run_id, reference) = (run.run_id.clone(), now.reference);
                self.notices.tell(Notice::Restored { run_id, reference });
                Ok(())
            }
            Err(RestoreWorkspaceError::Restore(error)) => Err(format!(
                "the thread's workspace cannot be restored from {} (another snapshot can be chosen with `outlast \
                 workspace restore`): {error}",
                now.reference
            )),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Whether the run works in a workspace of its thread's own, which later runs of the thread find again.
fn is_own(run: &RunRecord) -> bool {
    run.spec.workspace.is_none() && run.spec.sandbox.lifecycle.reuse == Reuse::Thread
}

/// A file name for the memory of a directory.
fn cache_name(root: &Path) -> String {
    outlast_core::canonical::digest(&serde_json::Value::String(root.to_string_lossy().into_owned()))
}
