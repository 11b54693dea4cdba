//! Adding to the log.

use deadpool_postgres::Client;
use outlast_core::Seq;
use outlast_core::decide::{Fenced, WriteDecision};
use outlast_core::event::{EventKind, Origin};
use outlast_core::run::{ClaimToken, Phase};
use outlast_store::{Append, AppendError, Appended, NewEvent, StoreError};

use super::context::{Tx, Value, get, int, to_json, uint};
use super::head::Head;
use super::ledger::{Session, pointers_of};
use super::messages::{Columns, write_messages};
use crate::failure::{Tried, defect};

/// The whole append in one statement: the update locks the row, and finds it only where the claim, the tail and the
/// status are as the writer believes; what follows is inserted only where it has. A claim that commits in between makes
/// the update look at the row anew, so nothing can slip through.
macro_rules! at_once {
    ($more:literal) => {
        concat!(
            "WITH head AS (\
                UPDATE runs SET tail = tail + $6, last_batch = $5, cursor = coalesce($7, cursor), \
                    agent_session = coalesce($8, agent_session) \
                WHERE run_id = $1 AND epoch = $2 AND lease_nonce = $3 AND tail = $4 \
                    AND status IN ('running', 'interrupted') \
                RETURNING run, tail\
            ), added AS (\
                INSERT INTO events (run, seq, at, origin_byte, origin_index, json) \
                SELECT head.run, $4 + event.n, outlast_now(), event.byte, event.index, event.json \
                FROM head, unnest($9::bigint[], $10::integer[], $11::bytea[]) WITH ORDINALITY AS event (byte, index, json, n)\
            )",
            $more,
            " SELECT tail FROM head"
        )
    };
}
/// What most appends are. A part of a statement costs PostgreSQL time also where it has nothing to do.
const EVENTS_AT_ONCE: &str = at_once!("");
const AT_ONCE: &str = at_once!(
    ", said AS (\
        INSERT INTO messages (run, ordinal, json) \
        SELECT head.run, message.ordinal, message.json FROM head, unnest($12::bigint[], $13::text[]) AS message (ordinal, json) \
        ON CONFLICT (run, ordinal) DO UPDATE SET json = excluded.json, blob_key = NULL, blob_size = NULL, sum = NULL, \
            stub = NULL\
    )"
);

/// See [`outlast_store::Log::append`]: in one statement, of what points to no body elsewhere. None where something is not as
/// the writer believes, which [`append`] finds out.
pub(crate) async fn append_at_once(client: &Client, request: &Append) -> Tried<Option<Appended>> {
    let token = &request.token;
    let events = Events::of(&request.events);
    let messages = Columns::of(&request.messages)?;
    let (run_id, nonce, batch) = (token.run_id.as_str(), token.nonce.as_str(), request.batch.as_str());
    let (epoch, tail, count) =
        (int(token.epoch), int(request.expected_tail.0), int(request.events.len() as u64));
    let (cursor, session) = (request.cursor.as_ref().map(to_json).transpose()?, session(request));
    let values: [Value<'_>; 13] = [
        &run_id,
        &epoch,
        &nonce,
        &tail,
        &batch,
        &count,
        &cursor,
        &session,
        &events.bytes,
        &events.indexes,
        &events.json,
        &messages.ordinals,
        &messages.json,
    ];
    let (sql, values) =
        if messages.ordinals.is_empty() { (EVENTS_AT_ONCE, &values[..11]) } else { (AT_ONCE, &values[..]) };
    let statement = client.prepare_cached(sql).await?;
    let row = client.query_opt(&statement, values).await?;
    row.map(|row| Ok(Appended { tail: Seq(uint(get(&row, 0)?)) })).transpose()
}

/// See [`outlast_store::Log::append`]: step by step, with the row locked, so that the answer says why not.
pub(crate) async fn append(tx: &Tx<'_>, request: &Append) -> Tried<Result<Appended, AppendError>> {
    let run_id = &request.token.run_id;
    let Some(head) = Head::lock(tx, run_id).await? else {
        return Ok(Err(Fenced::RunNotFound(run_id.clone()).into()));
    };
    match head.facts.append(&request.token, &request.batch, request.expected_tail) {
        Ok(WriteDecision::Write) => {}
        Ok(WriteDecision::Written) => return Ok(Ok(Appended { tail: head.facts.tail })),
        Err(refusal) => return Ok(Err(refusal.into())),
    }
    let keys = pointers_of(&request.events, &request.messages);
    if !keys.is_empty() {
        let session = Session::lock_or_make(tx, &head.tenant, &head.thread_id, head.run, true).await?;
        if let Err(refusal) = session.may_point_to(tx, request.barrier, &keys).await? {
            return Ok(Err(AppendError::Bodies(refusal)));
        }
    }
    let tail = write_content(tx, &head, request).await?;
    tx.write(
        "UPDATE runs SET tail = $2, last_batch = $3, cursor = coalesce($4, cursor), \
         agent_session = coalesce($5, agent_session) WHERE run = $1",
        &[
            &head.run,
            &int(tail.0),
            &request.batch.as_str(),
            &request.cursor.as_ref().map(to_json).transpose()?,
            &session(request),
        ],
    )
    .await?;
    tx.touch(run_id);
    Ok(Ok(Appended { tail }))
}

/// See [`outlast_store::Log::launched`].
pub(crate) async fn launched(
    tx: &Tx<'_>,
    token: &ClaimToken,
    expected_tail: Seq,
    events: &[NewEvent],
) -> Tried<Result<Appended, AppendError>> {
    if let Err(error) = refuse_terminal(events.iter().map(|event| event.chunk.kind)) {
        return Ok(Err(error.into()));
    }
    let Some(head) = Head::lock(tx, &token.run_id).await? else {
        return Ok(Err(Fenced::RunNotFound(token.run_id.clone()).into()));
    };
    match head.facts.launched(token, expected_tail, head.phase == Phase::Launched) {
        Ok(WriteDecision::Write) => {}
        Ok(WriteDecision::Written) => return Ok(Ok(Appended { tail: head.facts.tail })),
        Err(refusal) => return Ok(Err(refusal.into())),
    }
    write_events(tx, head.run, head.facts.tail.0, events).await?;
    let tail = head.facts.tail.0 + events.len() as u64;
    tx.write(
        "UPDATE runs SET phase = 'launched', tail = $2, last_batch = NULL WHERE run = $1",
        &[&head.run, &int(tail)],
    )
    .await?;
    tx.touch(&token.run_id);
    Ok(Ok(Appended { tail: Seq(tail) }))
}

/// Only `finish` ends a log.
pub(crate) fn refuse_terminal(mut kinds: impl Iterator<Item = EventKind>) -> Result<(), StoreError> {
    match kinds.find(|kind| kind.is_terminal()) {
        None => Ok(()),
        Some(kind) => Err(defect(format!("{} is only written by the end of a run", kind.as_str()))),
    }
}

/// Writes events and messages, and answers with the tail after them. Everything is decided before.
pub(super) async fn write_content(tx: &Tx<'_>, head: &Head, request: &Append) -> Tried<Seq> {
    write_events(tx, head.run, head.facts.tail.0, &request.events).await?;
    write_messages(tx, head.run, &request.messages).await?;
    Ok(Seq(head.facts.tail.0 + request.events.len() as u64))
}

/// Writes events after the given tail.
pub(super) async fn write_events(tx: &Tx<'_>, run: i64, tail: u64, events: &[NewEvent]) -> Tried<()> {
    if events.is_empty() {
        return Ok(());
    }
    let Events { bytes, indexes, json } = Events::of(events);
    let pointers = || events.iter().map(|event| event.pointer.as_ref());
    if pointers().all(|pointer| pointer.is_none()) {
        tx.write(
            "INSERT INTO events (run, seq, at, origin_byte, origin_index, json) \
             SELECT $1, $2 + event.n, outlast_now(), event.byte, event.index, event.json \
             FROM unnest($3::bigint[], $4::integer[], $5::bytea[]) WITH ORDINALITY AS event (byte, index, json, n)",
            &[&run, &int(tail), &bytes, &indexes, &json],
        )
        .await?;
        return Ok(());
    }
    let keys: Vec<Option<&str>> =
        pointers().map(|pointer| pointer.map(|pointer| pointer.key.as_str())).collect();
    let sizes: Vec<Option<i64>> =
        pointers().map(|pointer| pointer.map(|pointer| int(pointer.size))).collect();
    tx.write(
        "INSERT INTO events (run, seq, at, origin_byte, origin_index, json, blob_key, blob_size) \
         SELECT $1, $2 + event.n, outlast_now(), event.byte, event.index, event.json, event.key, event.size \
         FROM unnest($3::bigint[], $4::integer[], $5::bytea[], $6::text[], $7::bigint[]) \
         WITH ORDINALITY AS event (byte, index, json, key, size, n)",
        &[&run, &int(tail), &bytes, &indexes, &json, &keys, &sizes],
    )
    .await?;
    Ok(())
}

/// The session in the agent's own words. A text of PostgreSQL holds no NUL, and no agent can be given one as an argument.
pub(super) fn session(request: &Append) -> Option<String> {
    request.agent_session.as_ref().map(|session| session.replace('\0', "\u{fffd}"))
}

/// Events by columns.
struct Events<'e> {
    bytes: Vec<Option<i64>>,
    indexes: Vec<Option<i32>>,
    json: Vec<&'e [u8]>,
}

impl<'e> Events<'e> {
    fn of(events: &'e [NewEvent]) -> Events<'e> {
        let origin = |event: &NewEvent| match event.origin {
            Origin::Host => (None, None),
            // A line yields far fewer events than that.
            Origin::Journal { byte, index } => {
                (Some(int(byte)), Some(i32::try_from(index).unwrap_or(i32::MAX)))
            }
        };
        let (bytes, indexes) = events.iter().map(origin).unzip();
        Events { bytes, indexes, json: events.iter().map(|event| event.chunk.json.as_bytes()).collect() }
    }
}
