//! Listing runs.

use deadpool_postgres::Client;
use outlast_core::run::{RunRecord, Status};
use outlast_core::{Tenant, ThreadId};
use outlast_store::ListRuns;

use super::context::int;
use super::record::{record, select_records};
use crate::failure::Tried;

/// See [`outlast_store::Runs::list_runs`].
pub(crate) async fn list_runs(client: &Client, query: &ListRuns) -> Tried<Vec<RunRecord>> {
    let live = |status: &Status| matches!(status, Status::Running | Status::Interrupted);
    // Each form has an index that yields the page without looking at what is not in it.
    let sql = if query.thread_id.is_some() {
        select_records!(
            "WHERE r.tenant = $1 AND r.thread_id = $2 \
             AND (r.started_at, r.run_id COLLATE \"C\") < ($3, coalesce($4, r.run_id) COLLATE \"C\") \
             AND ($5::text[] IS NULL OR r.status = ANY ($5)) AND (NOT $6 OR (r.status IN ('running', 'interrupted') \
             AND (r.lease_owner IS NULL OR r.lease_until <= outlast_now()))) \
             AND (NOT $8 OR (r.status IN ('running', 'interrupted') AND greatest(r.started_at, \
             (SELECT max(p.until_time) FROM presence p WHERE p.run = r.run)) <= outlast_now())) \
             ORDER BY r.started_at DESC, r.run_id COLLATE \"C\" DESC LIMIT $7"
        )
    } else if !query.statuses.is_empty() && query.statuses.iter().all(live) {
        select_records!(
            "WHERE r.tenant = $1 AND $2::text IS NULL AND r.status IN ('running', 'interrupted') \
             AND (r.started_at, r.run_id COLLATE \"C\") < ($3, coalesce($4, r.run_id) COLLATE \"C\") \
             AND ($5::text[] IS NULL OR r.status = ANY ($5)) AND (NOT $6 OR (r.status IN ('running', 'interrupted') \
             AND (r.lease_owner IS NULL OR r.lease_until <= outlast_now()))) \
             AND (NOT $8 OR (r.status IN ('running', 'interrupted') AND greatest(r.started_at, \
             (SELECT max(p.until_time) FROM presence p WHERE p.run = r.run)) <= outlast_now())) \
             ORDER BY r.started_at DESC, r.run_id COLLATE \"C\" DESC LIMIT $7"
        )
    } else {
        select_records!(
            "WHERE r.tenant = $1 AND $2::text IS NULL \
             AND (r.started_at, r.run_id COLLATE \"C\") < ($3, coalesce($4, r.run_id) COLLATE \"C\") \
             AND ($5::text[] IS NULL OR r.status = ANY ($5)) AND (NOT $6 OR (r.status IN ('running', 'interrupted') \
             AND (r.lease_owner IS NULL OR r.lease_until <= outlast_now()))) \
             AND (NOT $8 OR (r.status IN ('running', 'interrupted') AND greatest(r.started_at, \
             (SELECT max(p.until_time) FROM presence p WHERE p.run = r.run)) <= outlast_now())) \
             ORDER BY r.started_at DESC, r.run_id COLLATE \"C\" DESC LIMIT $7"
        )
    };
    let statuses: Option<Vec<&str>> =
        (!query.statuses.is_empty()).then(|| query.statuses.iter().map(|status| status.as_str()).collect());
    let statement = client.prepare_cached(sql).await?;
    let rows = client
        .query(
            &statement,
            &[
                &query.tenant.as_str(),
                &query.thread_id.as_ref().map(ThreadId::as_str),
                &query.after.as_ref().map_or(i64::MAX, |(at, _)| int(*at)),
                &query.after.as_ref().map(|(_, run_id)| run_id.as_str()),
                &statuses,
                &query.undriven,
                &int(query.limit as u64),
                &query.detached,
            ],
        )
        .await?;
    rows.iter().map(record).collect()
}

/// See [`outlast_store::Runs::find_active_run`].
pub(crate) async fn find_active_run(
    client: &Client,
    tenant: &Tenant,
    thread: &ThreadId,
) -> Tried<Option<RunRecord>> {
    let statement = client
        .prepare_cached(select_records!(
            "WHERE r.tenant = $1 AND r.thread_id = $2 AND r.status IN ('running', 'interrupted') \
             AND r.status = 'running'"
        ))
        .await?;
    let row = client.query_opt(&statement, &[&tenant.as_str(), &thread.as_str()]).await?;
    row.as_ref().map(record).transpose()
}
