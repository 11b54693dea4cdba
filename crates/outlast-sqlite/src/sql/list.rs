//! Listing runs.

use outlast_core::run::{RunRecord, Status};
use outlast_core::{Tenant, ThreadId};
use outlast_store::ListRuns;
use rusqlite::{OptionalExtension, named_params};

use super::context::{View, int, to_json};
use super::record::{record, select_records};
use crate::failure::Tried;

/// See [`outlast_store::Runs::list_runs`].
pub(crate) fn list_runs(view: &View<'_>, query: &ListRuns) -> Tried<Vec<RunRecord>> {
    let live = |status: &Status| matches!(status, Status::Running | Status::Interrupted);
    // Each form has an index that yields the page without looking at what is not in it.
    let sql = if query.thread_id.is_some() {
        select_records!(
            "WHERE r.tenant = :tenant AND r.thread_id = :thread \
             AND (r.started_at, r.run_id) < (:at, coalesce(:run_id, r.run_id)) \
             AND (:statuses IS NULL OR r.status IN (SELECT value FROM json_each(:statuses))) \
             ORDER BY r.started_at DESC, r.run_id DESC LIMIT :limit"
        )
    } else if !query.statuses.is_empty() && query.statuses.iter().all(live) {
        select_records!(
            "WHERE r.tenant = :tenant AND :thread IS NULL AND r.status IN ('running', 'interrupted') \
             AND (r.started_at, r.run_id) < (:at, coalesce(:run_id, r.run_id)) \
             AND (:statuses IS NULL OR r.status IN (SELECT value FROM json_each(:statuses))) \
             ORDER BY r.started_at DESC, r.run_id DESC LIMIT :limit"
        )
    } else {
        select_records!(
            "WHERE r.tenant = :tenant AND :thread IS NULL \
             AND (r.started_at, r.run_id) < (:at, coalesce(:run_id, r.run_id)) \
             AND (:statuses IS NULL OR r.status IN (SELECT value FROM json_each(:statuses))) \
             ORDER BY r.started_at DESC, r.run_id DESC LIMIT :limit"
        )
    };
    let statuses = (!query.statuses.is_empty()).then(|| to_json(&query.statuses)).transpose()?;
    let mut statement = view.db.prepare_cached(sql)?;
    let mut rows = statement.query(named_params! {
        ":tenant": query.tenant.as_str(),
        ":thread": query.thread_id.as_ref().map(ThreadId::as_str),
        ":at": query.after.as_ref().map_or(i64::MAX, |(at, _)| int(*at)),
        ":run_id": query.after.as_ref().map(|(_, run_id)| run_id.as_str()),
        ":statuses": statuses,
        // Who is dead is not for SQL to say, so all are looked through where only runs without a driver or viewer are wanted.
        ":limit": if query.undriven || query.detached { -1 } else { int(query.limit as u64) },
    })?;
    let mut runs = Vec::new();
    while runs.len() < query.limit
        && let Some(row) = rows.next()?
    {
        let run = record(view, row)?;
        let undriven = run.driver.is_none() && !run.status.is_terminal();
        if (!query.undriven || undriven) && (!query.detached || run.detached_since.is_some()) {
            runs.push(run);
        }
    }
    Ok(runs)
}

/// See [`outlast_store::Runs::find_active_run`].
pub(crate) fn find_active_run(
    view: &View<'_>,
    tenant: &Tenant,
    thread: &ThreadId,
) -> Tried<Option<RunRecord>> {
    let mut statement = view.db.prepare_cached(select_records!(
        "WHERE r.tenant = ?1 AND r.thread_id = ?2 AND r.status IN ('running', 'interrupted') \
         AND r.status = 'running'"
    ))?;
    let found =
        statement.query_row((tenant.as_str(), thread.as_str()), |row| Ok(record(view, row))).optional()?;
    found.transpose()
}
