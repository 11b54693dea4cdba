//! What the ledger is given of runs: their starts, and with their ends their messages.

use outlast_core::decide::SessionState;
use outlast_core::transcript::Message;
use outlast_core::{Tenant, ThreadId};
use outlast_store::{SessionHead, SessionName, run_ended, run_started};

use super::entries::Entries;
use super::session::{Session, head};
use crate::failure::Tried;
use crate::sql::context::{Tx, View, parsed};
use crate::sql::record;

/// A run of which the ledger lacks something.
struct Left {
    run: i64,
    started: bool,
}

/// Runs of the thread of which something is to be given to the ledger, in the order of their acceptance. Usually none:
/// each run has given what it had in the transaction that made it.
pub(super) const LEFT: &str = "SELECT run, ledgered FROM runs WHERE tenant = ?1 AND thread_id = ?2 AND ledgered < 2 \
     AND (ledgered = 0 OR status NOT IN ('running', 'interrupted')) ORDER BY run";

fn left(view: &View<'_>, tenant: &Tenant, thread: &ThreadId) -> Tried<Vec<Left>> {
    let mut statement = view.db.prepare_cached(LEFT)?;
    let mut rows = statement.query((tenant.as_str(), thread.as_str()))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(Left { run: row.get(0)?, started: row.get::<_, i64>(1)? > 0 });
    }
    Ok(found)
}

/// Gives the thread's ledger what its runs have for it and it lacks; of a run that has just been accepted or has just
/// ended, and of those that an older version has accepted or ended. `session` is that of the thread; answered is the
/// session after it, made where a run needs one.
pub(crate) fn settle(
    tx: &Tx<'_>,
    session: Option<Session>,
    tenant: &Tenant,
    thread: &ThreadId,
) -> Tried<Option<Session>> {
    // What is being deleted gets nothing any more: its runs go as they are.
    if session.as_ref().is_some_and(|session| session.state != SessionState::Active) {
        return Ok(session);
    }
    let left = left(tx, tenant, thread)?;
    if left.is_empty() {
        return Ok(session);
    }
    let session = match session {
        Some(session) => session,
        None => Session::create(tx, tenant, thread)?,
    };
    let mut entries = Entries::open(tx, session)?;
    for Left { run, started } in left {
        let record = record::existing(tx, run)?;
        if !started {
            let input = input(tx, run)?;
            entries.add(&run_started(&record.run_id, &record.agent, record.model.as_deref(), &input))?;
        }
        let ended = record.status.is_terminal();
        if ended {
            entries.take_messages(run, &record.run_id)?;
            entries.add(&run_ended(&record))?;
        }
        // When it happened, and not when it was recorded: a thread of an older version does not become young by being
        // looked after.
        entries.active(record.finished_at.unwrap_or(record.started_at));
        tx.db
            .prepare_cached("UPDATE runs SET ledgered = ?2 WHERE run = ?1")?
            .execute((run, if ended { 2 } else { 1 }))?;
    }
    entries.save().map(Some)
}

/// The messages of the run's input, which stand before its first event.
fn input(view: &View<'_>, run: i64) -> Tried<Vec<Message>> {
    let mut statement = view
        .db
        .prepare_cached("SELECT json FROM messages WHERE run = ?1 AND ordinal < 0 ORDER BY ordinal")?;
    let mut rows = statement.query([run])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found
            .push(parsed("message", serde_json::from_slice(parsed("message", row.get_ref(0)?.as_bytes())?))?);
    }
    Ok(found)
}

/// What [`settle_session`] answers, if it would write nothing: usually so.
pub(crate) fn settled(
    view: &View<'_>,
    tenant: &Tenant,
    thread: &ThreadId,
) -> Tried<Option<Option<SessionHead>>> {
    if left(view, tenant, thread)?.is_empty() { found(view, tenant, thread).map(Some) } else { Ok(None) }
}

/// See [`outlast_store::Ledger::settle_session`].
pub(crate) fn settle_session(tx: &Tx<'_>, tenant: &Tenant, thread: &ThreadId) -> Tried<Option<SessionHead>> {
    let session = Session::of_thread(tx, tenant, thread)?;
    settle(tx, session, tenant, thread)?;
    found(tx, tenant, thread)
}

fn found(view: &View<'_>, tenant: &Tenant, thread: &ThreadId) -> Tried<Option<SessionHead>> {
    head(view, tenant, &SessionName::Thread(thread.clone()))
}
