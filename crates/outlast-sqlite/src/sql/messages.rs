//! The transcript.

use outlast_core::transcript::Message;
use outlast_core::{RunId, Tenant, ThreadId};
use outlast_store::MessageRow;
use rusqlite::{OptionalExtension, Rows};

use super::context::{Tx, View, parsed, to_json};
use crate::failure::Tried;

/// Adds the message, or replaces the one in its place.
pub(super) fn write_message(tx: &Tx<'_>, run: i64, ordinal: i64, message: &Message) -> Tried<()> {
    tx.db
        .prepare_cached(
            "INSERT INTO messages (run, ordinal, json) VALUES (?1, ?2, ?3) \
             ON CONFLICT DO UPDATE SET json = excluded.json",
        )?
        .execute((run, ordinal, to_json(message)?))?;
    Ok(())
}

/// See [`outlast_store::Ledger::thread_messages`]. Ordered by the key of the run, which counts acceptances; the wall
/// clock may have jumped back between two of them.
pub(crate) fn thread_messages(view: &View<'_>, tenant: &Tenant, thread: &ThreadId) -> Tried<Vec<MessageRow>> {
    let mut statement = view.db.prepare_cached(
        "SELECT r.run_id, m.ordinal, m.json FROM runs r JOIN messages m ON m.run = r.run \
         WHERE r.tenant = ?1 AND r.thread_id = ?2 ORDER BY r.run, m.ordinal",
    )?;
    collect(statement.query((tenant.as_str(), thread.as_str()))?)
}

/// See [`outlast_store::Ledger::run_messages`].
pub(crate) fn run_messages(view: &View<'_>, tenant: &Tenant, run_id: &RunId) -> Tried<Vec<MessageRow>> {
    let mut statement = view.db.prepare_cached(
        "SELECT r.run_id, m.ordinal, m.json FROM runs r JOIN messages m ON m.run = r.run \
         WHERE r.run_id = ?1 AND r.tenant = ?2 ORDER BY m.ordinal",
    )?;
    collect(statement.query((run_id.as_str(), tenant.as_str()))?)
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
