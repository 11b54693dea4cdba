//! What is written: each text a function of where it stands, so that whoever reads it knows what it must be.

use outlast_core::event::{Chunk, Event, Origin, RUN_ACCEPTED};
use outlast_core::ledger::{Consistency, Record, Trigger, WorkspaceCheckpointed};
use outlast_core::transcript::{Message, Role};
use outlast_core::{RunId, ThreadId, WorkspaceRef};
use outlast_store::{NewEvent, NewMessage, NewRecord};
use sha2::{Digest, Sha256};

/// What is larger is off-loaded. More than what stands for a body keeps of a text would be told apart from it only by luck.
pub(super) const OFFLOAD: usize = 1500;

/// A text, small or large as its place decides.
fn text(place: &str) -> String {
    let digest = Sha256::digest(place.as_bytes());
    let word = outlast_core::hex::encode(&digest);
    match digest[0] % 5 {
        0 | 1 => word[..8].to_owned(),
        2 => word.repeat(4),
        3 => word.repeat(28),
        _ => word.repeat(60),
    }
}

/// The message at this place of a run.
pub(super) fn said(run: &RunId, ordinal: i64) -> Message {
    let role = if ordinal < 0 { Role::User } else { Role::Assistant };
    Message::text(format!("m{ordinal}"), role, text(&format!("{run}/{ordinal}")))
}

/// As a message for a store.
pub(super) fn new_message(run: &RunId, ordinal: i64) -> NewMessage {
    NewMessage::new(ordinal, said(run, ordinal))
}

/// As a record for a ledger.
pub(super) fn message_record(run: &RunId, ordinal: i64) -> NewRecord {
    let record = Record::Message { run_id: run.clone(), ordinal, message: said(run, ordinal) };
    NewRecord::new(outlast_core::ledger::message_id(run, ordinal), record)
}

/// A snapshot that nobody has made.
pub(super) fn checkpoint_record(run: &RunId, n: u64) -> NewRecord {
    let digest: [u8; 32] = Sha256::digest(format!("{run}/{n}").as_bytes()).into();
    let record = Record::WorkspaceCheckpointed(WorkspaceCheckpointed {
        reference: WorkspaceRef::from_digest(digest),
        consistency: Consistency::Fuzzy,
        trigger: Trigger::Manual,
        run_id: Some(run.clone()),
    });
    NewRecord::new(format!("workspace_checkpointed/{run}-{n}"), record)
}

/// The event with this number of a run's log, which ends with the number `last`.
pub(super) fn event(run: &RunId, thread: &ThreadId, seq: u64, last: u64) -> Chunk {
    if seq == 1 {
        return Event::Custom { name: RUN_ACCEPTED.into(), value: serde_json::json!({}) }.chunk();
    }
    if seq == last {
        return Event::RunFinished {
            thread_id: thread.to_string().into(),
            run_id: run.to_string().into(),
            result: None,
            usage: Vec::new().into(),
            metadata: None,
        }
        .chunk();
    }
    let delta = text(&format!("{run}/event/{seq}"));
    Event::TextMessageContent { message_id: format!("m{seq}").into(), delta: delta.into() }.chunk()
}

/// As an event for a store.
pub(super) fn new_event(run: &RunId, thread: &ThreadId, seq: u64, last: u64) -> NewEvent {
    NewEvent::new(Origin::Host, event(run, thread, seq, last))
}
