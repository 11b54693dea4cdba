//! The end of sessions.

use std::time::Duration;

use outlast_core::decide::{DeleteRefusal, SessionState};
use outlast_core::ledger::SessionId;
use outlast_core::{RunId, Tenant};
use outlast_store::{DeleteError, SessionHead, SessionName, Swept};
use rusqlite::OptionalExtension;

use super::session::{Session, head};
use crate::failure::{Failure, Tried};
use crate::sql::append::SEQ_BITS;
use crate::sql::context::{Tx, int, millis, parsed};

/// See [`outlast_store::Ledger::begin_delete`].
pub(crate) fn begin_delete(
    tx: &Tx<'_>,
    tenant: &Tenant,
    name: &SessionName,
    idle_for: Option<Duration>,
) -> Tried<Result<SessionHead, DeleteError>> {
    let Some(found) = head(tx, tenant, name)? else {
        return Ok(Err(DeleteRefusal::SessionNotFound(name.to_string()).into()));
    };
    let session_id = found.session_id.clone();
    let live: Option<String> = tx
        .db
        .prepare_cached(
            "SELECT run_id FROM runs WHERE tenant = ?1 AND thread_id = ?2 AND status IN ('running', 'interrupted')",
        )?
        .query_row((tenant.as_str(), found.thread_id.as_str()), |row| row.get(0))
        .optional()?;
    if let Some(run_id) = live {
        let run_id = parsed("run id", RunId::new(run_id))?;
        return Ok(Err(DeleteRefusal::Live { session_id, run_id }.into()));
    }
    if found.state != SessionState::Active {
        return Ok(Ok(found));
    }
    if idle_for.is_some_and(|idle| found.active_at.saturating_add(millis(idle)) > tx.wall) {
        return Ok(Err(DeleteRefusal::Used(session_id).into()));
    }
    tx.db
        .prepare_cached("UPDATE sessions SET state = 'deleting' WHERE session_id = ?1")?
        .execute([session_id.as_str()])?;
    let begun = head(tx, tenant, &SessionName::Id(session_id))?;
    begun.map(Ok).ok_or_else(|| Failure::Damaged("a session is missing".to_owned()))
}

/// The first of a session's runs.
pub(super) const FIRST_RUN: &str = "SELECT r.run FROM sessions s JOIN runs r ON r.tenant = s.tenant AND r.thread_id = s.thread_id \
     WHERE s.session = ?1 ORDER BY r.run LIMIT 1";

/// See [`outlast_store::Ledger::delete_rows`]. A run goes with its row, which goes last: whatever is left of one when a
/// process dies in between is found by it.
pub(crate) fn delete_rows(tx: &Tx<'_>, id: &SessionId, max_rows: usize) -> Tried<Swept> {
    let mut swept = Swept::default();
    let Some(session) = Session::by_id(tx, id)?.filter(|session| session.state == SessionState::Deleting)
    else {
        return Ok(swept);
    };
    let first_run = || -> Tried<Option<i64>> {
        Ok(tx.db.prepare_cached(FIRST_RUN)?.query_row([session.key], |row| row.get(0)).optional()?)
    };
    let max = max_rows as u64;
    while swept.rows < max
        && let Some(run) = first_run()?
    {
        let events = (run << SEQ_BITS, (run + 1) << SEQ_BITS);
        swept.rows += range(
            tx,
            "DELETE FROM events WHERE id IN (SELECT id FROM events WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3)",
            events,
            max - swept.rows,
        )?;
        if swept.rows < max {
            swept.rows += range(
                tx,
                "DELETE FROM messages WHERE rowid IN (SELECT rowid FROM messages WHERE run >= ?1 AND run < ?2 LIMIT ?3)",
                (run, run + 1),
                max - swept.rows,
            )?;
        }
        if swept.rows >= max {
            // A log counts as aged out as a whole, from its first row on.
            tx.db
                .prepare_cached("UPDATE runs SET expired = 1 WHERE run = ?1 AND expired = 0")?
                .execute([run])?;
            break;
        }
        for sql in [
            "DELETE FROM presence WHERE run = ?1",
            "DELETE FROM specs WHERE run = ?1",
            "DELETE FROM runs WHERE run = ?1",
        ] {
            swept.rows += tx.db.prepare_cached(sql)?.execute([run])? as u64;
        }
        swept.runs += 1;
    }
    swept.more = first_run()?.is_some();
    if !swept.more {
        let all = (session.record(1), session.record(u64::MAX) + 1);
        let room = max.saturating_sub(swept.rows);
        swept.rows += range(
            tx,
            "DELETE FROM records WHERE id IN (SELECT id FROM records WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3)",
            all,
            room,
        )?;
        swept.more = tx
            .db
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM records WHERE id >= ?1 AND id < ?2)")?
            .query_row(all, |row| row.get(0))?;
    }
    Ok(swept)
}

/// Deletes at most so many rows of a range, and answers how many there were.
fn range(tx: &Tx<'_>, sql: &str, (from, to): (i64, i64), room: u64) -> Tried<u64> {
    Ok(tx.db.prepare_cached(sql)?.execute((from, to, int(room)))? as u64)
}

/// See [`outlast_store::Ledger::end_delete`].
pub(crate) fn end_delete(tx: &Tx<'_>, id: &SessionId) -> Tried<()> {
    let Some(session) = Session::by_id(tx, id)?.filter(|session| session.state == SessionState::Deleting)
    else {
        return Ok(());
    };
    tx.db
        .prepare_cached(
            "UPDATE sessions SET state = 'deleted', deleted_at = ?2, tip = 0, fold = NULL WHERE session = ?1",
        )?
        .execute((session.key, int(tx.wall)))?;
    tx.db.prepare_cached("DELETE FROM condemned WHERE session = ?1")?.execute([session.key])?;
    Ok(())
}
