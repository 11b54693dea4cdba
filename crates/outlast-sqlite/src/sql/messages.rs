//! The transcript of runs that live, and of those that have not given theirs to the ledger.

use outlast_core::ledger::Pointer;
use outlast_core::{RunId, Tenant, ThreadId};
use outlast_store::{MessageRow, NewMessage};
use rusqlite::{OptionalExtension, Rows};

use super::context::{Tx, View, parsed, pointer, stored_pointer, to_json};
use crate::failure::Tried;

/// Where the message's body is, where that was off-loaded.
pub(super) fn pointer_of(message: &NewMessage) -> Option<&Pointer> {
    message.offloaded.as_ref().map(|offloaded| &offloaded.pointer)
}

/// Adds the message, or replaces the one in its place.
pub(super) fn write_message(tx: &Tx<'_>, run: i64, message: &NewMessage) -> Tried<()> {
    let (key, size) = stored_pointer(pointer_of(message));
    let sum = message.offloaded.as_ref().map(|offloaded| offloaded.sum.as_str());
    tx.db
        .prepare_cached(
            "INSERT INTO messages (run, ordinal, json, blob_key, blob_size, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
             ON CONFLICT DO UPDATE SET json = excluded.json, blob_key = excluded.blob_key, \
             blob_size = excluded.blob_size, sum = excluded.sum",
        )?
        .execute((run, message.ordinal, to_json(&message.message)?, key, size, sum))?;
    Ok(())
}

/// Those of the thread. Ordered by the key of the run, which counts acceptances; the wall clock may have jumped back
/// between two of them.
pub(super) const OF_THREAD: &str = "SELECT r.run_id, m.ordinal, m.json, m.blob_key, m.blob_size FROM runs r \
     JOIN messages m ON m.run = r.run WHERE r.tenant = ?1 AND r.thread_id = ?2 AND r.ledgered < 2 \
     ORDER BY r.run, m.ordinal";

/// The messages of the thread's runs that are not in its ledger.
pub(super) fn of_thread(view: &View<'_>, tenant: &Tenant, thread: &ThreadId) -> Tried<Vec<MessageRow>> {
    let mut statement = view.db.prepare_cached(OF_THREAD)?;
    collect(statement.query((tenant.as_str(), thread.as_str()))?)
}

/// The messages of a run that are not in the ledger.
pub(super) fn of_run(view: &View<'_>, run: i64) -> Tried<Vec<MessageRow>> {
    let mut statement = view.db.prepare_cached(
        "SELECT r.run_id, m.ordinal, m.json, m.blob_key, m.blob_size FROM runs r JOIN messages m ON m.run = r.run \
         WHERE r.run = ?1 ORDER BY m.ordinal",
    )?;
    collect(statement.query([run])?)
}

fn collect(mut rows: Rows<'_>) -> Tried<Vec<MessageRow>> {
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        messages.push(MessageRow {
            run_id: parsed("run id", RunId::new(row.get::<_, String>(0)?))?,
            ordinal: row.get(1)?,
            message: parsed(
                "message",
                serde_json::from_slice(parsed("message", row.get_ref(2)?.as_bytes())?),
            )?,
            pointer: pointer(row, 3)?,
        });
    }
    Ok(messages)
}

/// See [`outlast_store::Ledger::last_agent_session`].
pub(crate) fn last_agent_session(
    view: &View<'_>,
    tenant: &Tenant,
    thread: &ThreadId,
    kind: &str,
    before: &RunId,
) -> Tried<Option<String>> {
    let mut statement = view.db.prepare_cached(
        "SELECT agent_session FROM runs WHERE tenant = ?1 AND thread_id = ?2 AND kind = ?3 \
         AND agent_session IS NOT NULL AND run < (SELECT run FROM runs WHERE run_id = ?4) \
         ORDER BY run DESC LIMIT 1",
    )?;
    let session = statement
        .query_row((tenant.as_str(), thread.as_str(), kind, before.as_str()), |row| row.get(0))
        .optional()?;
    Ok(session)
}
