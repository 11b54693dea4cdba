//! What records say.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Envelope;
use crate::run::{EndReason, RunError, Status, Usage};
use crate::transcript::Message;
use crate::{RunId, WorkspaceRef};

/// The kinds of record that this program knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A message of the thread.
    Message,
    /// A run was accepted.
    RunStarted,
    /// A run has ended.
    RunEnded,
    /// A snapshot of the workspace was made, and is durable.
    WorkspaceCheckpointed,
    /// The workspace was made anew from a snapshot.
    WorkspaceRestored,
    /// The session's activity has ended: no run lives, and no sandbox.
    SessionStopped,
    /// A collection of bodies has begun. Bodies that were put before are put again before anything points to them.
    Barrier,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 7] = [
        Kind::Message,
        Kind::RunStarted,
        Kind::RunEnded,
        Kind::WorkspaceCheckpointed,
        Kind::WorkspaceRestored,
        Kind::SessionStopped,
        Kind::Barrier,
    ];

    /// The stored form.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Message => "message",
            Kind::RunStarted => "run_started",
            Kind::RunEnded => "run_ended",
            Kind::WorkspaceCheckpointed => "workspace_checkpointed",
            Kind::WorkspaceRestored => "workspace_restored",
            Kind::SessionStopped => "session_stopped",
            Kind::Barrier => "barrier",
        }
    }

    /// Reads the stored form.
    pub fn parse(text: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Whether a program that does not know it may pass over it.
    pub fn skippable(self) -> bool {
        self == Kind::Barrier
    }
}

/// A record.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// See [`Kind::Message`]. Of a body that is elsewhere, this is what stands for it.
    Message {
        /// The run that it belongs to.
        run_id: RunId,
        /// Its place within the run.
        ordinal: i64,
        /// The message.
        message: Message,
    },
    /// See [`Kind::RunStarted`].
    RunStarted(RunStarted),
    /// See [`Kind::RunEnded`].
    RunEnded(RunEnded),
    /// See [`Kind::WorkspaceCheckpointed`].
    WorkspaceCheckpointed(WorkspaceCheckpointed),
    /// See [`Kind::WorkspaceRestored`].
    WorkspaceRestored(WorkspaceRestored),
    /// See [`Kind::SessionStopped`].
    SessionStopped(SessionStopped),
    /// See [`Kind::Barrier`].
    Barrier {
        /// The epoch of the lease under which the collection runs.
        epoch: u64,
    },
}

/// A run was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunStarted {
    /// The run.
    pub run_id: RunId,
    /// The agent's name.
    pub agent: String,
    /// The model that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The first line of what the user said, at most 80 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// A run has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunEnded {
    /// The run.
    pub run_id: RunId,
    /// How.
    pub status: Status,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<EndReason>,
    /// Why it failed or was aborted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// The agent's exit status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What it used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<Usage>,
}

/// A snapshot of the workspace is durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceCheckpointed {
    /// Its name.
    #[serde(rename = "ref")]
    pub reference: WorkspaceRef,
    /// Whether somebody may have written meanwhile.
    pub consistency: Consistency,
    /// Why it was made.
    pub trigger: Trigger,
    /// The run after which it was made; none where it belongs to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
}

/// The workspace is what a snapshot says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceRestored {
    /// The snapshot.
    #[serde(rename = "ref")]
    pub reference: WorkspaceRef,
    /// The run for which it was made; none where a person wanted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
}

/// The session's activity has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStopped {
    /// Why.
    pub reason: StopReason,
}

/// Why a session's activity has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// Nobody came back, and its sandbox is gone.
    Idle,
    /// A person wanted it.
    User,
}

/// Whether a snapshot shows the workspace as it was at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consistency {
    /// Nobody wrote while it was made.
    Quiescent,
    /// Somebody did, or may have.
    Fuzzy,
}

/// Why a snapshot was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// A person, or a program of theirs, wanted it.
    Manual,
    /// A run has ended.
    RunEnded,
    /// Nothing went on, and the sandbox was about to be destroyed.
    Idle,
}

macro_rules! words {
    ($name:ident: $($variant:ident $text:literal),*) => {
        impl $name {
            /// The printed form.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}
words!(StopReason: Idle "idle", User "user");
words!(Consistency: Quiescent "quiescent", Fuzzy "fuzzy");
words!(Trigger: Manual "manual", RunEnded "run_ended", Idle "idle");

/// What a stored or imported record is to this program.
#[derive(Debug, Clone, PartialEq)]
pub enum Decoded {
    /// A record that it knows.
    Known(Box<Record>),
    /// One that it does not know and may pass over.
    Skipped,
}

/// Why a record cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Of a kind that this program does not know and must not pass over.
    #[error(
        "the record {id:?} is of the kind {kind:?}, which this program does not know: use a newer program"
    )]
    UnknownKind {
        /// The kind.
        kind: String,
        /// The record's id.
        id: String,
    },
    /// Its body is not what its kind says.
    #[error("the record {id:?} ({kind}) cannot be read: {why}")]
    Body {
        /// The kind.
        kind: String,
        /// The record's id.
        id: String,
        /// What is wrong.
        why: String,
    },
}

/// The id of a message's record.
pub fn message_id(run_id: &RunId, ordinal: i64) -> String {
    format!("message/{run_id}/{ordinal}")
}

/// The run and the place that a message's id names.
pub fn message_place(id: &str) -> Option<(RunId, i64)> {
    let (run_id, ordinal) = id.strip_prefix("message/")?.rsplit_once('/')?;
    Some((RunId::new(run_id).ok()?, ordinal.parse().ok()?))
}

/// The first line that says something, at most 80 characters (the relative's figure).
pub fn title(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(80).collect())
}

impl Record {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Record::Message { .. } => Kind::Message,
            Record::RunStarted(_) => Kind::RunStarted,
            Record::RunEnded(_) => Kind::RunEnded,
            Record::WorkspaceCheckpointed(_) => Kind::WorkspaceCheckpointed,
            Record::WorkspaceRestored(_) => Kind::WorkspaceRestored,
            Record::SessionStopped(_) => Kind::SessionStopped,
            Record::Barrier { .. } => Kind::Barrier,
        }
    }

    /// The id that says itself which record this is: of a message, and of a run's start and end. The others are told
    /// apart by what made them, which chooses their ids.
    pub fn own_id(&self) -> Option<String> {
        match self {
            Record::Message { run_id, ordinal, .. } => Some(message_id(run_id, *ordinal)),
            Record::RunStarted(started) => Some(format!("run_started/{}", started.run_id)),
            Record::RunEnded(ended) => Some(format!("run_ended/{}", ended.run_id)),
            _ => None,
        }
    }

    /// The run that it belongs to.
    pub fn run_id(&self) -> Option<&RunId> {
        match self {
            Record::Message { run_id, .. } => Some(run_id),
            Record::RunStarted(started) => Some(&started.run_id),
            Record::RunEnded(ended) => Some(&ended.run_id),
            Record::WorkspaceCheckpointed(made) => made.run_id.as_ref(),
            Record::WorkspaceRestored(made) => made.run_id.as_ref(),
            Record::SessionStopped(_) | Record::Barrier { .. } => None,
        }
    }

    /// The snapshot that it names.
    pub fn workspace_ref(&self) -> Option<&WorkspaceRef> {
        match self {
            Record::WorkspaceCheckpointed(made) => Some(&made.reference),
            Record::WorkspaceRestored(made) => Some(&made.reference),
            _ => None,
        }
    }

    /// Its body as JSON. The same record always has the same.
    pub fn body(&self) -> String {
        let json = match self {
            Record::Message { message, .. } => serde_json::to_string(message),
            Record::RunStarted(body) => serde_json::to_string(body),
            Record::RunEnded(body) => serde_json::to_string(body),
            Record::WorkspaceCheckpointed(body) => serde_json::to_string(body),
            Record::WorkspaceRestored(body) => serde_json::to_string(body),
            Record::SessionStopped(body) => serde_json::to_string(body),
            Record::Barrier { epoch } => Ok(format!("{{\"epoch\":{epoch}}}")),
        };
        json.unwrap_or_else(|_| unreachable!("plain data has JSON"))
    }

    /// Its form outside the database, under this id.
    pub fn envelope(&self, id: &str, salt: Option<String>) -> Envelope {
        let kind = self.kind();
        let body = RawValue::from_string(self.body()).unwrap_or_else(|_| unreachable!("a body is JSON"));
        Envelope { kind: kind.as_str().to_owned(), skip: kind.skippable(), id: id.to_owned(), salt, body }
    }

    /// Reads a record from what was stored of it.
    pub fn decode(kind: &str, skip: bool, id: &str, body: &str) -> Result<Decoded, RecordError> {
        let Some(known) = Kind::parse(kind) else {
            if skip {
                return Ok(Decoded::Skipped);
            }
            return Err(RecordError::UnknownKind { kind: kind.to_owned(), id: id.to_owned() });
        };
        let bad = |why: String| RecordError::Body { kind: kind.to_owned(), id: id.to_owned(), why };
        fn parse<'de, T: Deserialize<'de>>(body: &'de str) -> Result<T, String> {
            serde_json::from_str(body).map_err(|error| error.to_string())
        }
        let record = match known {
            Kind::Message => {
                let (run_id, ordinal) =
                    message_place(id).ok_or_else(|| bad("its id names no run and place".to_owned()))?;
                parse(body).map(|message| Record::Message { run_id, ordinal, message })
            }
            Kind::RunStarted => parse(body).map(Record::RunStarted),
            Kind::RunEnded => parse(body).map(Record::RunEnded),
            Kind::WorkspaceCheckpointed => parse(body).map(Record::WorkspaceCheckpointed),
            Kind::WorkspaceRestored => parse(body).map(Record::WorkspaceRestored),
            Kind::SessionStopped => parse(body).map(Record::SessionStopped),
            Kind::Barrier => {
                #[derive(Deserialize)]
                struct Body {
                    epoch: u64,
                }
                parse(body).map(|Body { epoch }| Record::Barrier { epoch })
            }
        };
        record.map(|record| Decoded::Known(Box::new(record))).map_err(bad)
    }
}
