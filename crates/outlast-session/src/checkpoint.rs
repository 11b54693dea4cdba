//! Snapshots of a thread's workspace, and the records that name them.

use std::path::Path;
use std::time::Duration;

use outlast_core::ledger::{Consistency, Record, Trigger, WorkspaceCheckpointed, WorkspaceRestored};
use outlast_core::{Nonce, RunId, Tenant, ThreadId, WorkspaceRef};
use outlast_store::{AppendRecords, NewRecord, RecordsError, SessionName, StoreError};
use serde::Serialize;

use crate::workspace::{RestoreError, RestoreOptions, Restored, Snapshot, SnapshotError, SnapshotOptions};
use crate::{Sessions, fail};

/// For how long a pin holds unless it is set again, which happens at a third of that.
const PIN: Duration = Duration::from_secs(120);

/// How a snapshot is made and recorded.
#[derive(Debug, Clone)]
pub struct CheckpointOptions {
    /// Why it is made.
    pub trigger: Trigger,
    /// The run after which it is made.
    pub run_id: Option<RunId>,
    /// Whether nobody writes in the tree but runs of the thread.
    pub quiescent: bool,
    /// Whether a thread without a session gets one.
    pub create: bool,
    /// Whether it is recorded, too, where the workspace is known to be just that.
    pub unchanged: bool,
    /// What of the tree, and how.
    pub snapshot: SnapshotOptions,
}

/// A snapshot that is durable and recorded.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Checkpointed {
    /// The number of its record.
    pub seq: u64,
    /// Whether somebody may have written meanwhile.
    pub consistency: Consistency,
    /// Why it was made.
    pub trigger: Trigger,
    /// What it holds; its name is the `ref`.
    #[serde(flatten)]
    pub snapshot: Snapshot,
}

/// Why there is no snapshot. What was stored of one so far is collected some time.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The tree could not be read, or stored.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The record was refused.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a workspace is not what a snapshot says.
#[derive(Debug, thiserror::Error)]
pub enum RestoreWorkspaceError {
    /// It could not be restored.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// It was restored, and the record of that was refused.
    #[error(transparent)]
    Records(#[from] RecordsError),
}

/// What matters of a thread while its workspace is read.
#[derive(Default)]
struct State {
    /// Whether its last run has ended.
    rests: bool,
    last_run: Option<RunId>,
    workspace: Option<WorkspaceRef>,
}

impl Sessions {
    /// Makes a snapshot of the thread's workspace and records it once it is durable. What it relies on is pinned from before
    /// it looks at what is stored until the record names it: a pin that has run out meanwhile refuses the record. None: the
    /// workspace has not changed, and that is not to be recorded.
    pub async fn checkpoint(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
        root: &Path,
        options: &CheckpointOptions,
    ) -> Result<Option<Checkpointed>, CheckpointError> {
        let pin = self.ports.entropy.nonce();
        if self.store.pin(&pin, &self.owner, PIN).await?.is_none() {
            return Err(RecordsError::from(outlast_core::decide::RecordsRefusal::PinLost).into());
        }
        fail::point("checkpoint.pinned");
        let made = async {
            let before = self.state(tenant, thread).await?;
            let snapshot = self.workspaces().snapshot(root, &options.snapshot).await?;
            fail::point("checkpoint.stored");
            let after = self.state(tenant, thread).await?;
            // Before and after, the thread's last run was the same and had ended: no run wrote in between.
            let quiet =
                options.quiescent && before.rests && (before.last_run == after.last_run) && after.rests;
            let consistency = match quiet && !snapshot.changed {
                true => Consistency::Quiescent,
                false => Consistency::Fuzzy,
            };
            if !options.unchanged && after.workspace == Some(snapshot.reference) {
                return Ok(None);
            }
            let record = Record::WorkspaceCheckpointed(WorkspaceCheckpointed {
                reference: snapshot.reference,
                consistency,
                trigger: options.trigger,
                run_id: options.run_id.clone(),
            });
            let id = format!("workspace_checkpointed/{}", pin.as_str());
            let append = self.record(tenant, thread, id, record, Some(&pin), options.create);
            let seq = self.add_one(append).await?;
            fail::point("checkpoint.recorded");
            Ok(Some(Checkpointed { seq, consistency, trigger: options.trigger, snapshot }))
        };
        let made = tokio::select! {
            biased;
            made = made => made,
            lost = self.keep_pinned(&pin) => Err(lost),
        };
        if !matches!(made, Ok(Some(_))) {
            // Best effort: it runs out by itself.
            let _ = self.store.unpin(&pin).await;
        }
        made
    }

    async fn state(&self, tenant: &Tenant, thread: &ThreadId) -> Result<State, CheckpointError> {
        let name = SessionName::Thread(thread.clone());
        let Some(session) = self.store.session(tenant, &name).await? else { return Ok(State::default()) };
        let fold = self.fold(&session).await?;
        Ok(State {
            rests: fold.last_run.as_ref().is_some_and(|run| run.status.is_some()),
            last_run: fold.last_run.map(|run| run.run_id),
            workspace: fold.workspace.map(|now| now.reference),
        })
    }

    /// Makes a directory what the snapshot says, without a trace in any ledger.
    pub async fn restore_to(
        &self,
        reference: &WorkspaceRef,
        destination: &Path,
        options: &RestoreOptions,
    ) -> Result<Restored, RestoreError> {
        self.workspaces().restore(reference, destination, options).await
    }

    /// Makes the thread's workspace what the snapshot says, and records it. `id` tells this restore from others: the same
    /// again is recorded once.
    pub async fn restore_workspace(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
        reference: &WorkspaceRef,
        destination: &Path,
        options: &RestoreOptions,
        record: (String, Option<RunId>),
    ) -> Result<Restored, RestoreWorkspaceError> {
        let restored = self.restore_to(reference, destination, options).await?;
        fail::point("restore.done");
        self.choose_workspace(tenant, thread, reference, record).await?;
        fail::point("restore.recorded");
        Ok(restored)
    }

    /// Records that the thread's workspace is to be what the snapshot says, without touching a directory: its next run begins
    /// with it.
    pub async fn choose_workspace(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
        reference: &WorkspaceRef,
        record: (String, Option<RunId>),
    ) -> Result<u64, RecordsError> {
        let (id, run_id) = record;
        let record = Record::WorkspaceRestored(WorkspaceRestored { reference: *reference, run_id });
        self.add_one(self.record(tenant, thread, format!("workspace_restored/{id}"), record, None, true))
            .await
    }

    /// Returns only where the pin cannot be kept.
    async fn keep_pinned(&self, pin: &Nonce) -> CheckpointError {
        loop {
            self.ports.clock.sleep(PIN / 3).await;
            match self.store.pin(pin, &self.owner, PIN).await {
                Ok(Some(_)) => {}
                Ok(None) => {
                    return RecordsError::from(outlast_core::decide::RecordsRefusal::PinLost).into();
                }
                // The record is refused if it cannot be set again in time.
                Err(error) => tracing::debug!(%error, "a pin could not be renewed"),
            }
        }
    }

    fn record(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
        id: String,
        record: Record,
        pin: Option<&Nonce>,
        create: bool,
    ) -> AppendRecords {
        AppendRecords {
            tenant: tenant.clone(),
            thread_id: thread.clone(),
            expected_tip: None,
            barrier: None,
            lease: None,
            pin: pin.cloned(),
            create,
            records: vec![NewRecord::new(id, record)],
        }
    }

    /// Adds one small record; an answer that was lost is asked for once more.
    async fn add_one(&self, append: AppendRecords) -> Result<u64, RecordsError> {
        let added = match self.store.append_records(append.clone()).await {
            Err(RecordsError::Store(error)) if error.is_transient() => {
                self.store.append_records(append).await?
            }
            answer => answer?,
        };
        Ok(added.first().map_or(0, |added| added.seq))
    }
}
