//! Sessions of threads that are older than sessions.

use outlast_core::ledger::{Fold, SessionId};
use outlast_core::{Tenant, ThreadId};
use rusqlite::Connection;

use crate::failure::{Failure, Tried};

/// Makes a session of each thread that has runs, so that retention finds those to which nobody comes back. Their records
/// come with the next write to the thread.
pub(super) fn of_threads(db: &Connection) -> Tried<()> {
    let mut threads = db.prepare(
        "SELECT tenant, thread_id, min(started_at), max(max(started_at, coalesce(finished_at, 0))) FROM runs \
         GROUP BY tenant, thread_id ORDER BY min(run)",
    )?;
    let mut insert = db.prepare(
        "INSERT INTO sessions (session_id, tenant, thread_id, state, created_at, active_at, tip, barrier, fold) \
         VALUES (?1, ?2, ?3, 'active', ?4, ?5, 0, 0, ?6)",
    )?;
    let fold = Fold::empty().to_json();
    let mut deployment = None;
    let mut rows = threads.query([])?;
    while let Some(row) = rows.next()? {
        let (tenant, thread): (String, String) = (row.get(0)?, row.get(1)?);
        let thread = ThreadId::new(thread)
            .map_err(|error| Failure::Damaged(format!("a stored thread id cannot be read: {error}")))?;
        let tenant = Tenant(tenant);
        let deployment: &String = match &deployment {
            Some(known) => known,
            None => deployment.insert(db.query_row("SELECT deployment_id FROM meta", [], |row| row.get(0))?),
        };
        let id = SessionId::of(deployment, &tenant, &thread);
        let (created_at, active_at): (i64, i64) = (row.get(2)?, row.get(3)?);
        insert.execute((id.as_str(), tenant.as_str(), thread.as_str(), created_at, active_at, &fold))?;
    }
    Ok(())
}
