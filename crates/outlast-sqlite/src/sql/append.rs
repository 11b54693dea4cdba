//! Adding to the log.

use outlast_core::Seq;
use outlast_core::decide::{Fenced, WriteDecision};
use outlast_core::event::{EventKind, Origin};
use outlast_core::run::{ClaimToken, Phase};
use outlast_store::{Append, AppendError, Appended, NewEvent, StoreError};

use super::context::{Tx, int, stored_pointer, to_json};
use super::head::Head;
use super::ledger::check_bodies;
use super::messages::write_message;
use crate::failure::{Failure, Tried, defect};

/// Bits of an event's key that hold its number.
pub(super) const SEQ_BITS: u32 = 32;

/// See [`outlast_store::Log::append`].
pub(crate) fn append(tx: &Tx<'_>, request: &Append) -> Tried<Result<Appended, AppendError>> {
    if let Err(error) = refuse_terminal(request.events.iter().map(|event| event.chunk.kind)) {
        return Ok(Err(error.into()));
    }
    let run_id = &request.token.run_id;
    let Some(head) = Head::find(tx, run_id)? else {
        return Ok(Err(Fenced::RunNotFound(run_id.clone()).into()));
    };
    match head.facts.append(&request.token, &request.batch, request.expected_tail) {
        Ok(WriteDecision::Write) => {}
        Ok(WriteDecision::Written) => return Ok(Ok(Appended { tail: head.facts.tail })),
        Err(refusal) => return Ok(Err(refusal.into())),
    }
    if let Err(refusal) = check_bodies(tx, head.run, request)? {
        return Ok(Err(AppendError::Bodies(refusal)));
    }
    let tail = write_append(tx, &head, request)?;
    tx.touch(run_id);
    Ok(Ok(Appended { tail }))
}

/// See [`outlast_store::Log::launched`].
pub(crate) fn launched(
    tx: &Tx<'_>,
    token: &ClaimToken,
    expected_tail: Seq,
    events: &[NewEvent],
) -> Tried<Result<Appended, AppendError>> {
    if let Err(error) = refuse_terminal(events.iter().map(|event| event.chunk.kind)) {
        return Ok(Err(error.into()));
    }
    let Some(head) = Head::find(tx, &token.run_id)? else {
        return Ok(Err(Fenced::RunNotFound(token.run_id.clone()).into()));
    };
    match head.facts.launched(token, expected_tail, head.phase == Phase::Launched) {
        Ok(WriteDecision::Write) => {}
        Ok(WriteDecision::Written) => return Ok(Ok(Appended { tail: head.facts.tail })),
        Err(refusal) => return Ok(Err(refusal.into())),
    }
    write_events(tx, head.run, head.facts.tail.0, events)?;
    let tail = head.facts.tail.0 + events.len() as u64;
    tx.db
        .prepare_cached("UPDATE runs SET phase = 'launched', tail = ?2, last_batch = NULL WHERE run = ?1")?
        .execute((head.run, int(tail)))?;
    tx.touch(&token.run_id);
    Ok(Ok(Appended { tail: Seq(tail) }))
}

/// Only `finish` ends a log.
pub(super) fn refuse_terminal(mut kinds: impl Iterator<Item = EventKind>) -> Result<(), StoreError> {
    match kinds.find(|kind| kind.is_terminal()) {
        None => Ok(()),
        Some(kind) => Err(defect(format!("{} is only written by the end of a run", kind.as_str()))),
    }
}

/// Writes what an append carries. Everything is decided before.
pub(super) fn write_append(tx: &Tx<'_>, head: &Head, request: &Append) -> Tried<Seq> {
    write_events(tx, head.run, head.facts.tail.0, &request.events)?;
    for message in &request.messages {
        write_message(tx, head.run, message)?;
    }
    let tail = head.facts.tail.0 + request.events.len() as u64;
    let cursor = request.cursor.as_ref().map(to_json).transpose()?;
    tx.db
        .prepare_cached(
            "UPDATE runs SET tail = ?2, last_batch = ?3, cursor = coalesce(?4, cursor), \
             agent_session = coalesce(?5, agent_session) WHERE run = ?1",
        )?
        .execute((head.run, int(tail), request.batch.as_str(), cursor, &request.agent_session))?;
    Ok(Seq(tail))
}

/// Writes events after the given tail.
pub(super) fn write_events(tx: &Tx<'_>, run: i64, tail: u64, events: &[NewEvent]) -> Tried<()> {
    if tail + events.len() as u64 > u64::from(u32::MAX) {
        return Err(Failure::Damaged("a log has more than 4294967295 events".to_owned()));
    }
    let mut statement = tx.db.prepare_cached(
        "INSERT INTO events (id, at, origin_byte, origin_index, json, blob_key, blob_size) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for (seq, event) in (tail + 1..).zip(events) {
        let (byte, index) = match event.origin {
            Origin::Host => (None, None),
            Origin::Journal { byte, index } => (Some(int(byte)), Some(index)),
        };
        let id = event_id(run, Seq(seq));
        let (key, size) = stored_pointer(event.pointer.as_ref());
        statement.execute((id, int(tx.wall), byte, index, &event.chunk.json, key, size))?;
    }
    Ok(())
}

/// The key of an event.
pub(super) fn event_id(run: i64, seq: Seq) -> i64 {
    (run << SEQ_BITS) | int(seq.0.min(u64::from(u32::MAX)))
}
