//! Sessions of the threads that an older version has left.

use deadpool_postgres::Transaction;
use outlast_core::decide::SessionState;
use outlast_core::ledger::{Fold, SessionId};
use outlast_core::{Tenant, ThreadId};

use crate::failure::{Failure, Tried};

/// How many threads are looked at in one statement.
const BATCH: i64 = 1000;

/// Gives every thread that has runs its session, so that retention finds it. Its records come with the next write to the
/// thread: they are as many as all messages ever said, and hosts of the version before still add to what they come from.
pub(super) async fn make_sessions(tx: &Transaction<'_>, deployment_id: &str) -> Tried<()> {
    let fold = Fold::empty().to_json();
    let mut after = (String::new(), String::new());
    loop {
        let rows = tx
            .query(
                "SELECT tenant, thread_id, min(started_at), max(greatest(started_at, finished_at)) FROM runs \
                 WHERE (tenant, thread_id) > ($1, $2) GROUP BY tenant, thread_id ORDER BY tenant, thread_id LIMIT $3",
                &[&after.0, &after.1, &BATCH],
            )
            .await?;
        let (mut ids, mut tenants, mut threads) = (Vec::new(), Vec::new(), Vec::new());
        let (mut created, mut active) = (Vec::<i64>::new(), Vec::<i64>::new());
        for row in &rows {
            let (tenant, thread): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            let thread_id = ThreadId::new(thread.as_str())
                .map_err(|error| Failure::Damaged(format!("a stored thread id cannot be read: {error}")))?;
            ids.push(SessionId::of(deployment_id, &Tenant(tenant.clone()), &thread_id).to_string());
            tenants.push(tenant);
            threads.push(thread);
            created.push(row.try_get(2)?);
            active.push(row.try_get(3)?);
        }
        let (Some(tenant), Some(thread)) = (tenants.last(), threads.last()) else { return Ok(()) };
        after = (tenant.clone(), thread.clone());
        tx.execute(
            "INSERT INTO sessions (session_id, tenant, thread_id, state, created_at, active_at, tip, barrier, fold) \
             SELECT t.id, t.tenant, t.thread_id, $6, t.created_at, t.active_at, 0, 0, $7 \
             FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[]) \
             AS t (id, tenant, thread_id, created_at, active_at)",
            &[&ids, &tenants, &threads, &created, &active, &SessionState::Active.as_str(), &fold],
        )
        .await?;
    }
}
