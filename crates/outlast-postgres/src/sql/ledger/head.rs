//! Sessions, without their records.

use deadpool_postgres::Client;
use outlast_core::decide::SessionState;
use outlast_core::ledger::SessionId;
use outlast_core::{OwnerId, Tenant, ThreadId};
use outlast_store::{LeaseSeen, ListSessions, SessionHead, SessionName};
use tokio_postgres::Row;

use super::fold::fold;
use super::session::unsettled;
use crate::failure::Tried;
use crate::sql::context::{Tx, Value, get, int, millis, number, parsed, uint, word};

/// A query for sessions; what follows is its condition.
macro_rules! select_heads {
    ($besides:expr, $tail:literal) => {
        concat!(
            "SELECT s.session_id, s.tenant, s.thread_id, s.state, s.created_at, s.active_at, s.deleted_at, s.tip, \
             s.barrier, s.fold, l.owner, l.epoch, greatest(coalesce(l.until_time, 0) - outlast_now(), 0), l.note, \
             l.noted_at",
            $besides,
            " FROM sessions s LEFT JOIN leases l ON l.name = 'session/' || s.session_id ",
            $tail
        )
    };
}

const BY_THREAD: &str = select_heads!("", "WHERE s.tenant = $1 AND s.thread_id = $2");
const BY_ID: &str = select_heads!("", "WHERE s.tenant = $1 AND s.session_id = $2");
const SETTLED: &str =
    select_heads!(concat!(", ", unsettled!("s", "0")), "WHERE s.tenant = $1 AND s.thread_id = $2");

/// See [`outlast_store::Ledger::session`].
pub(crate) async fn session(
    client: &Client,
    tenant: &Tenant,
    name: &SessionName,
) -> Tried<Option<SessionHead>> {
    let (sql, name) = match name {
        SessionName::Thread(thread) => (BY_THREAD, thread.as_str()),
        SessionName::Id(id) => (BY_ID, id.as_str()),
    };
    let statement = client.prepare_cached(sql).await?;
    let row = client.query_opt(&statement, &[&tenant.as_str(), &name]).await?;
    row.as_ref().map(read).transpose()
}

/// A session, as the transaction sees it.
pub(super) async fn session_in(tx: &Tx<'_>, tenant: &Tenant, id: &SessionId) -> Tried<Option<SessionHead>> {
    let row = tx.maybe(BY_ID, &[&tenant.as_str(), &id.as_str()]).await?;
    row.as_ref().map(read).transpose()
}

/// What there is of a thread.
pub(crate) enum Found {
    /// Its session, to which nothing is missing.
    Settled(Box<SessionHead>),
    /// Runs whose records are missing.
    Unsettled,
    /// No run ever.
    Nothing,
}

/// The session of a thread, and whether it is to be settled first.
pub(crate) async fn look(client: &Client, tenant: &Tenant, thread: &ThreadId) -> Tried<Found> {
    let statement = client.prepare_cached(SETTLED).await?;
    let values: [Value<'_>; 2] = [&tenant.as_str(), &thread.as_str()];
    if let Some(row) = client.query_opt(&statement, &values).await? {
        let head = read(&row)?;
        let unsettled = head.state == SessionState::Active && get(&row, 15)?;
        return Ok(if unsettled { Found::Unsettled } else { Found::Settled(Box::new(head)) });
    }
    let statement = client.prepare_cached(HAS_RUNS).await?;
    let row = client.query_one(&statement, &values).await?;
    Ok(if get(&row, 0)? { Found::Unsettled } else { Found::Nothing })
}

/// Whether a thread has runs.
pub(super) const HAS_RUNS: &str = "SELECT EXISTS (SELECT 1 FROM runs WHERE tenant = $1 AND thread_id = $2)";

/// See [`outlast_store::Ledger::list_sessions`]. Planned anew each time, and with the states and the time as they are, since
/// of all sessions few or nearly all may be in one state, or idle for so long.
pub(crate) async fn list_sessions(client: &Client, query: &ListSessions) -> Tried<Vec<SessionHead>> {
    let mut sql = select_heads!("", "WHERE ($1::text IS NULL OR s.session_id > $1)").to_owned();
    let after = query.after.as_ref().map(SessionId::as_str);
    let limit = int(query.limit as u64);
    let mut values: Vec<Value<'_>> = vec![&after, &limit];
    let tenant = query.tenant.as_ref().map(Tenant::as_str);
    if let Some(tenant) = &tenant {
        values.push(tenant);
        sql.push_str(" AND s.tenant = $3");
    }
    if !query.states.is_empty() {
        let states: Vec<String> = query.states.iter().map(|state| format!("'{}'", state.as_str())).collect();
        sql.push_str(&format!(" AND s.state IN ({})", states.join(", ")));
    }
    let latest;
    if let Some(idle) = query.idle_for {
        let now: i64 = get(&client.query_one("SELECT outlast_now()", &[]).await?, 0)?;
        latest = now.saturating_sub(millis(idle));
        values.push(&latest);
        sql.push_str(&format!(
            " AND s.active_at <= ${} AND NOT EXISTS (\
                SELECT 1 FROM runs r WHERE r.tenant = s.tenant AND r.thread_id = s.thread_id \
                AND r.status IN ('running', 'interrupted')\
            ) AND NOT EXISTS (\
                SELECT 1 FROM instances i WHERE i.tenant = s.tenant AND i.thread_id = s.thread_id AND i.state <> 'gone')",
            values.len()
        ));
    }
    sql.push_str(if query.newest {
        " ORDER BY s.active_at DESC, s.session_id DESC LIMIT $2"
    } else {
        " ORDER BY s.session_id LIMIT $2"
    });
    let rows = client.query(sql.as_str(), &values).await?;
    rows.iter().map(read).collect()
}

fn read(row: &Row) -> Tried<SessionHead> {
    let tip = number(row, 7)?;
    let remaining = number(row, 12)?;
    let lease = match get::<Option<&str>>(row, 10)? {
        Some(owner) if remaining > 0 => Some(LeaseSeen {
            owner: parsed("owner", OwnerId::new(owner))?,
            epoch: get::<Option<i64>>(row, 11)?.map_or(0, uint),
            remaining,
        }),
        _ => None,
    };
    let note = get::<Option<i64>>(row, 13)?.zip(get::<Option<i64>>(row, 14)?);
    Ok(SessionHead {
        session_id: parsed("session id", SessionId::parse(get(row, 0)?))?,
        tenant: Tenant(get(row, 1)?),
        thread_id: parsed("thread id", ThreadId::new(get::<&str>(row, 2)?))?,
        state: word("state of a session", get(row, 3)?, SessionState::parse)?,
        created_at: number(row, 4)?,
        active_at: number(row, 5)?,
        deleted_at: get::<Option<i64>>(row, 6)?.map(uint),
        tip,
        barrier: number(row, 8)?,
        fold: fold(get(row, 9)?, tip),
        lease,
        note: note.map(|(note, at)| (uint(note), uint(at))),
    })
}
