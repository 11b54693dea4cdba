//! Numbers for people.

use outlast_core::run::Status;
use outlast_store::{InstanceState, StoreStats};

use super::context::{View, int, uint};
use crate::failure::Tried;

/// See [`outlast_store::Store::stats`].
pub(crate) fn stats(view: &View<'_>) -> Tried<StoreStats> {
    let mut stats = StoreStats::default();
    for status in Status::ALL {
        let count: i64 = view
            .db
            .prepare_cached("SELECT count(*) FROM runs WHERE status = ?1")?
            .query_row([status.as_str()], |row| row.get(0))?;
        if count > 0 {
            stats.runs.insert(status.as_str(), uint(count));
        }
    }
    let mut statement = view.db.prepare_cached(
        "SELECT r.started_at, (SELECT max(p.until) FROM presence p WHERE p.run = r.run), r.detached_ttl, \
         r.lease_owner, r.lease_boot, r.lease_until, r.status = 'running' FROM runs r WHERE r.status IN ('running', 'interrupted')",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let latest: Option<i64> = row.get(1)?;
        let since =
            outlast_core::decide::detached_since(uint(row.get(0)?), latest.map(uint), view.wall, false);
        let detached_for = since.map(|since| view.wall - since);
        let ttl: Option<i64> = row.get(2)?;
        let driven = match row.get::<_, Option<String>>(3)? {
            Some(owner) => view.lease_remaining(&owner, &row.get::<_, String>(4)?, uint(row.get(5)?)) > 0,
            None => false,
        };
        stats.detached += u64::from(detached_for.is_some());
        stats.undriven += u64::from(!driven);
        // A run that waits for a person has a time of its own.
        let over = detached_for.zip(ttl.map(uint)).is_some_and(|(time, ttl)| time >= ttl);
        stats.overdue += u64::from(over && row.get::<_, bool>(6)?);
        stats.oldest_detached = stats.oldest_detached.max(detached_for);
    }
    let count = |sql: &str| -> Tried<u64> {
        Ok(view.db.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0)).map(uint)?)
    };
    for state in [InstanceState::Creating, InstanceState::Live, InstanceState::Destroying] {
        let found: i64 = view
            .db
            .prepare_cached("SELECT count(*) FROM instances WHERE state <> 'gone' AND state = ?1")?
            .query_row([state.as_str()], |row| row.get(0))?;
        if found > 0 {
            stats.instances.insert(state.as_str(), uint(found));
        }
    }
    let pending: i64 = view
        .db
        .prepare_cached(
            "SELECT count(*) FROM instances WHERE state <> 'gone' AND reclaim_at IS NOT NULL \
             AND (reclaim_at <= ?1 OR reclaim_failed > 0)",
        )?
        .query_row([int(view.wall)], |row| row.get(0))?;
    stats.reclaims_pending = uint(pending);
    stats.reclaims_failed = count(
        "SELECT count(*) FROM instances WHERE state <> 'gone' AND reclaim_at IS NOT NULL AND reclaim_failed > 0",
    )?;
    stats.bytes = count("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")?;
    Ok(stats)
}
