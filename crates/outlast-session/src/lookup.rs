//! Which snapshots ledgers name.

use std::collections::BTreeSet;

use outlast_core::decide::SessionState;
use outlast_core::ledger::{Consistency, Decoded, Kind, Record, SessionId, Trigger, WorkspaceCheckpointed};
use outlast_core::{RunId, WorkspaceRef};
use outlast_store::{ListSessions, ReadRecords, StoreError, StoredRecord};
use serde::Serialize;

use crate::Sessions;

/// A ledger could not be read to its end, so it is not known which snapshots it names.
#[derive(Debug, thiserror::Error)]
#[error("the snapshots of session {session_id} cannot be told: {cause}")]
pub struct WorkspaceScanError {
    /// The session; empty where the sessions themselves could not be listed.
    pub session_id: String,
    /// Why.
    pub cause: String,
}

/// A snapshot that a ledger names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointSummary {
    /// The number of its record.
    pub seq: u64,
    /// When that was written, in milliseconds since 1970.
    pub at: u64,
    /// Its name.
    #[serde(rename = "ref")]
    pub reference: WorkspaceRef,
    /// Whether somebody may have written meanwhile.
    pub consistency: Consistency,
    /// Why it was made.
    pub trigger: Trigger,
    /// The run after which it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
}

impl Sessions {
    /// Every snapshot that was made of a workspace of these sessions, or from which one was made anew. Whole or an error.
    pub async fn workspace_live_refs(
        &self,
        sessions: &[SessionId],
    ) -> Result<BTreeSet<WorkspaceRef>, WorkspaceScanError> {
        let mut live = BTreeSet::new();
        for session in sessions {
            let wanted = [Kind::WorkspaceCheckpointed, Kind::WorkspaceRestored];
            for (_, record) in self.records_of(session, 0, &wanted).await? {
                live.extend(record.workspace_ref().copied());
            }
        }
        Ok(live)
    }

    /// Every session whose snapshots are kept: all that are not deleted.
    pub async fn retained_sessions(&self) -> Result<Vec<SessionId>, WorkspaceScanError> {
        let states = vec![SessionState::Active, SessionState::Deleting];
        let mut pages = self.pages(ListSessions { states, ..ListSessions::default() });
        let failed =
            |error: StoreError| WorkspaceScanError { session_id: String::new(), cause: error.to_string() };
        let mut found = Vec::new();
        while let Some(page) = pages.next().await.map_err(failed)? {
            found.extend(page.into_iter().map(|session| session.session_id));
        }
        Ok(found)
    }

    /// The snapshot that the record with this number tells of; none where it tells of none.
    pub async fn workspace_checkpoint_by_seq(
        &self,
        session: &SessionId,
        seq: u64,
    ) -> Result<Option<CheckpointSummary>, WorkspaceScanError> {
        let Some(after) = seq.checked_sub(1) else { return Ok(None) };
        let query = ReadRecords {
            session_id: session.clone(),
            after,
            kinds: Vec::new(),
            max_records: 1,
            max_bytes: usize::MAX,
        };
        let page = self.store.read_records(&query).await.map_err(|error| WorkspaceScanError {
            session_id: session.to_string(),
            cause: error.to_string(),
        })?;
        let Some(stored) = page.records.first().filter(|stored| stored.seq == seq) else {
            return Ok(None);
        };
        // Whatever else the record is, it is no snapshot.
        if stored.kind != Kind::WorkspaceCheckpointed.as_str() {
            return Ok(None);
        }
        Ok(read(session, stored)?.and_then(|record| summary(stored, &record)))
    }

    /// The latest snapshot that was made after this run; none where there is none.
    pub async fn workspace_checkpoint_by_turn(
        &self,
        session: &SessionId,
        run: &RunId,
    ) -> Result<Option<CheckpointSummary>, WorkspaceScanError> {
        let all = self.workspace_checkpoints(session).await?;
        Ok(all.into_iter().rev().find(|made| made.run_id.as_ref() == Some(run)))
    }

    /// Every snapshot of the session's workspace, the oldest first.
    pub async fn workspace_checkpoints(
        &self,
        session: &SessionId,
    ) -> Result<Vec<CheckpointSummary>, WorkspaceScanError> {
        let records = self.records_of(session, 0, &[Kind::WorkspaceCheckpointed]).await?;
        Ok(records.iter().filter_map(|(stored, record)| summary(stored, record)).collect())
    }

    async fn records_of(
        &self,
        session: &SessionId,
        after: u64,
        kinds: &[Kind],
    ) -> Result<Vec<(StoredRecord, Record)>, WorkspaceScanError> {
        let mut query = ReadRecords {
            session_id: session.clone(),
            after,
            kinds: kinds.to_vec(),
            max_records: 1000,
            max_bytes: 4 << 20,
        };
        let mut found = Vec::new();
        loop {
            let page = self.store.read_records(&query).await.map_err(|error| WorkspaceScanError {
                session_id: session.to_string(),
                cause: error.to_string(),
            })?;
            for stored in page.records {
                query.after = stored.seq;
                if let Some(record) = read(session, &stored)? {
                    found.push((stored, record));
                }
            }
            if !page.more {
                return Ok(found);
            }
        }
    }
}

/// What the record says. None: of a kind that may be passed over, and so names no snapshot.
fn read(session: &SessionId, stored: &StoredRecord) -> Result<Option<Record>, WorkspaceScanError> {
    let fail = |cause: String| WorkspaceScanError { session_id: session.to_string(), cause };
    if !stored.is_intact() {
        return Err(fail(format!("record {} ({:?}) is damaged", stored.seq, stored.id)));
    }
    match stored.decode() {
        Ok(Decoded::Known(record)) => Ok(Some(*record)),
        Ok(Decoded::Skipped) => Ok(None),
        Err(error) => Err(fail(error.to_string())),
    }
}

fn summary(stored: &StoredRecord, record: &Record) -> Option<CheckpointSummary> {
    let Record::WorkspaceCheckpointed(made) = record else { return None };
    let WorkspaceCheckpointed { reference, consistency, trigger, run_id } = made.clone();
    Some(CheckpointSummary { seq: stored.seq, at: stored.at, reference, consistency, trigger, run_id })
}
