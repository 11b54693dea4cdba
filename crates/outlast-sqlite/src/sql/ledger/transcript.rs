//! Messages, of which those of runs that have ended are in the ledger.

use outlast_core::ledger::{Decoded, Kind, Record, message_id};
use outlast_core::{RunId, Tenant, ThreadId};
use outlast_store::{MessagePage, MessageRow};
use rusqlite::{OptionalExtension, Row};

use super::session::Session;
use crate::failure::Tried;
use crate::sql::append::SEQ_BITS;
use crate::sql::context::{View, pointer, uint};
use crate::sql::messages;

/// Messages of the ledger, the latest first. Other records are passed over: there are about as many as there are runs,
/// and their rows are seen without what they say.
pub(super) const LATEST: &str = "SELECT id, record_id, body, blob_key, blob_size FROM records \
     WHERE id >= ?1 AND id < ?2 AND kind = 'message' ORDER BY id DESC";

/// See [`outlast_store::Ledger::thread_messages`].
pub(crate) fn thread_messages(
    view: &View<'_>,
    tenant: &Tenant,
    thread: &ThreadId,
    before: Option<u64>,
    limit: usize,
) -> Tried<MessagePage> {
    let live = match before {
        Some(_) => Vec::new(),
        None => messages::of_thread(view, tenant, thread)?,
    };
    let Some(session) = Session::of_thread(view, tenant, thread)? else {
        return Ok(MessagePage { messages: live, before: None });
    };
    let mut statement = view.db.prepare_cached(LATEST)?;
    let end = session.record(before.unwrap_or(session.tip + 1));
    let mut rows = statement.query((session.record(1), end))?;
    let (mut found, mut first, mut more) = (Vec::new(), None, false);
    while let Some(row) = rows.next()? {
        let Some(message) = message(row)? else { continue };
        if found.len() + live.len() >= limit {
            more = true;
            break;
        }
        first = Some(uint(row.get::<_, i64>(0)? & ((1 << SEQ_BITS) - 1)));
        found.push(message);
    }
    found.reverse();
    found.extend(live);
    // Of a page that holds only what has no number yet, everything that has one comes before.
    let before = more.then(|| first.or(before).unwrap_or(session.tip + 1));
    Ok(MessagePage { messages: found, before })
}

/// The messages of one run, whose ids have a beginning in common.
pub(super) const OF_RUN: &str = "SELECT id, record_id, body, blob_key, blob_size FROM records \
     WHERE session = ?1 AND record_id >= ?2 AND record_id < ?3 AND kind = 'message' ORDER BY id";

/// See [`outlast_store::Ledger::run_messages`].
pub(crate) fn run_messages(view: &View<'_>, tenant: &Tenant, run_id: &RunId) -> Tried<Vec<MessageRow>> {
    let found: Option<(i64, bool, Option<i64>)> = view
        .db
        .prepare_cached(
            "SELECT r.run, r.ledgered = 2, s.session FROM runs r \
             LEFT JOIN sessions s ON s.tenant = r.tenant AND s.thread_id = r.thread_id \
             WHERE r.run_id = ?1 AND r.tenant = ?2",
        )?
        .query_row((run_id.as_str(), tenant.as_str()), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let session = match found {
        None => return Ok(Vec::new()),
        Some((_, true, Some(session))) => session,
        Some((run, ..)) => return messages::of_run(view, run),
    };
    let id = message_id(run_id, 0);
    let prefix = id.trim_end_matches('0');
    let mut statement = view.db.prepare_cached(OF_RUN)?;
    // `0` comes after `/`.
    let end = format!("{}0", prefix.trim_end_matches('/'));
    let mut rows = statement.query((session, prefix, end))?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        // The id of another run may begin with this one's and a slash.
        messages.extend(message(row)?.filter(|message| message.run_id == *run_id));
    }
    Ok(messages)
}

/// A message of the ledger; none where it cannot be read.
fn message(row: &Row<'_>) -> Tried<Option<MessageRow>> {
    let (id, body): (String, String) = (row.get(1)?, row.get(2)?);
    let kind = Kind::Message;
    let Ok(Decoded::Known(known)) = Record::decode(kind.as_str(), kind.skippable(), &id, &body) else {
        return Ok(None);
    };
    let Record::Message { run_id, ordinal, message } = *known else { return Ok(None) };
    Ok(Some(MessageRow { run_id, ordinal, message, pointer: pointer(row, 3)? }))
}
