//! Numbers for people.

use deadpool_postgres::Client;
use outlast_core::run::Status;
use outlast_store::{InstanceState, StoreStats};

use super::context::{get, number, uint};
use crate::failure::Tried;

const LIVE: &str = "\
SELECT count(*) FILTER (WHERE since <= now), count(*) FILTER (WHERE NOT driven), \
    count(*) FILTER (WHERE status = 'running' AND since <= now AND now - since >= detached_ttl), \
    max(now - since) FILTER (WHERE since <= now) \
FROM (\
    SELECT r.status, r.detached_ttl, outlast_now() AS now, \
        greatest(r.started_at, (SELECT max(p.until_time) FROM presence p WHERE p.run = r.run)) AS since, \
        r.lease_owner IS NOT NULL AND r.lease_until > outlast_now() AS driven \
    FROM runs r WHERE r.status IN ('running', 'interrupted')\
) AS live";

const RECLAIMS: &str = "\
SELECT count(*), count(*) FILTER (WHERE reclaim_failed > 0) FROM instances \
WHERE state <> 'gone' AND reclaim_at IS NOT NULL AND (reclaim_at <= outlast_now() OR reclaim_failed > 0)";

const BYTES: &str = "\
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c \
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'";

/// See [`outlast_store::Store::now`].
pub(crate) async fn now(client: &Client) -> Tried<u64> {
    number(&client.query_one("SELECT outlast_now()", &[]).await?, 0)
}

/// See [`outlast_store::Store::stats`].
pub(crate) async fn stats(client: &Client) -> Tried<StoreStats> {
    let mut stats = StoreStats::default();
    for row in client.query("SELECT status, count(*) FROM runs GROUP BY status", &[]).await? {
        if let Some(status) = Status::parse(get(&row, 0)?) {
            stats.runs.insert(status.as_str(), number(&row, 1)?);
        }
    }
    let row = client.query_one(LIVE, &[]).await?;
    stats.detached = number(&row, 0)?;
    stats.undriven = number(&row, 1)?;
    stats.overdue = number(&row, 2)?;
    stats.oldest_detached = get::<Option<i64>>(&row, 3)?.map(uint);
    let states = "SELECT state, count(*) FROM instances WHERE state <> 'gone' GROUP BY state";
    for row in client.query(states, &[]).await? {
        if let Some(state) = InstanceState::parse(get(&row, 0)?) {
            stats.instances.insert(state.as_str(), number(&row, 1)?);
        }
    }
    let row = client.query_one(RECLAIMS, &[]).await?;
    stats.reclaims_pending = number(&row, 0)?;
    stats.reclaims_failed = number(&row, 1)?;
    stats.bytes = number(&client.query_one(BYTES, &[]).await?, 0)?;
    Ok(stats)
}
