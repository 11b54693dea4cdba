//! What a ledger amounts to, kept with its tip so that opening a session does not read it.

use serde::{Deserialize, Serialize};

use super::{Consistency, Kind, Record, StopReason};
use crate::run::Status;
use crate::{RunId, WorkspaceRef};

/// The state after a ledger's records, in order. A function of them alone: whoever has lost it folds again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fold {
    /// The version of this form. Of another one, nothing is used and all is folded again.
    pub version: u32,
    /// The number of the last record that it knows.
    pub seq: u64,
    /// When that was written, in milliseconds since 1970.
    pub at: u64,
    /// How many of them are messages.
    pub messages: u64,
    /// How many runs were started.
    pub runs: u64,
    /// How many snapshots of the workspace were made.
    pub checkpoints: u64,
    /// What the first user said, in short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun>,
    /// What the workspace was last known to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceNow>,
    /// Set while the session's activity has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
}

/// The last run of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastRun {
    /// The run.
    pub run_id: RunId,
    /// How it has ended; none while it lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
}

/// What a workspace was last known to be: of the last checkpoint or restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceNow {
    /// The snapshot.
    #[serde(rename = "ref")]
    pub reference: WorkspaceRef,
    /// The number of the record that says so.
    pub seq: u64,
    /// Whether it was restored from the snapshot, rather than the snapshot made of it.
    pub restored: bool,
    /// The run after which the snapshot was made, or for which it was restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Whether somebody may have written while the snapshot was made; none of a restore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consistency: Option<Consistency>,
}

/// The end of a session's activity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stopped {
    /// The number of the record that says so.
    pub seq: u64,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// Why.
    pub reason: StopReason,
}

impl Fold {
    /// The version that this program writes and reads.
    pub const VERSION: u32 = 1;

    /// Of no record.
    pub fn empty() -> Fold {
        Fold { version: Fold::VERSION, ..Fold::default() }
    }

    /// Reads the stored form; none where it is of another version, or none at all.
    pub fn read(json: &str) -> Option<Fold> {
        serde_json::from_str::<Fold>(json).ok().filter(|fold| fold.version == Fold::VERSION)
    }

    /// The stored form.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| unreachable!("plain data has JSON"))
    }

    /// Takes the next record.
    pub fn apply(&mut self, seq: u64, at: u64, record: &Record) {
        (self.seq, self.at) = (seq, at);
        match record {
            Record::Message { .. } => self.messages += 1,
            Record::RunStarted(started) => {
                self.runs += 1;
                self.stopped = None;
                if self.title.is_none() {
                    self.title.clone_from(&started.title);
                }
                self.last_run = Some(LastRun { run_id: started.run_id.clone(), status: None });
            }
            Record::RunEnded(ended) => {
                self.last_run = Some(LastRun { run_id: ended.run_id.clone(), status: Some(ended.status) });
            }
            Record::WorkspaceCheckpointed(made) => {
                self.checkpoints += 1;
                self.workspace = Some(WorkspaceNow {
                    reference: made.reference,
                    seq,
                    restored: false,
                    run_id: made.run_id.clone(),
                    consistency: Some(made.consistency),
                });
            }
            Record::WorkspaceRestored(made) => {
                self.workspace = Some(WorkspaceNow {
                    reference: made.reference,
                    seq,
                    restored: true,
                    run_id: made.run_id.clone(),
                    consistency: None,
                });
            }
            Record::SessionStopped(stopped) => {
                self.stopped = Some(Stopped { seq, at, reason: stopped.reason });
            }
            Record::Barrier { .. } => {}
        }
    }

    /// Takes a record that may be passed over.
    pub fn pass(&mut self, seq: u64, at: u64) {
        (self.seq, self.at) = (seq, at);
    }

    /// Takes so many messages at once, the last of which has this number: what they say makes no difference.
    pub fn apply_messages(&mut self, count: u64, last_seq: u64, at: u64) {
        debug_assert_eq!(Kind::Message.as_str(), "message");
        if count > 0 {
            self.messages += count;
            (self.seq, self.at) = (last_seq, at);
        }
    }
}
