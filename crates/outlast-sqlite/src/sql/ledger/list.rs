//! Listing sessions.

use outlast_core::Tenant;
use outlast_core::ledger::SessionId;
use outlast_store::{ListSessions, SessionHead};
use rusqlite::named_params;

use super::session::{read_head, select_heads};
use crate::failure::Tried;
use crate::sql::context::{View, int, millis, to_json};

macro_rules! select_sessions {
    ($of:literal, $order:literal) => {
        select_heads!(
            $of,
            "AND s.session_id > :after \
             AND (:tenant IS NULL OR s.tenant = :tenant) \
             AND (:states IS NULL OR s.state IN (SELECT value FROM json_each(:states))) \
             AND s.active_at <= :cutoff \
             AND (:idle = 0 OR (NOT EXISTS (SELECT 1 FROM runs r WHERE r.tenant = s.tenant AND r.thread_id = s.thread_id \
                 AND r.status IN ('running', 'interrupted')) \
             AND NOT EXISTS (SELECT 1 FROM instances i WHERE i.tenant = s.tenant AND i.thread_id = s.thread_id \
                 AND i.state <> 'gone'))) ",
            $order,
            " LIMIT :limit"
        )
    };
}

/// The last active ones of a tenant.
pub(super) const NEWEST_OF_TENANT: &str =
    select_sessions!("WHERE s.tenant = :tenant ", "ORDER BY s.active_at DESC, s.session_id DESC");

/// The last active ones of all. People ask for that, and rarely.
const NEWEST: &str = select_sessions!("WHERE true ", "ORDER BY s.active_at DESC, s.session_id DESC");

/// Of one state, by id. The index knows when each was active, so that of those that are not old enough not even the row
/// is read: what looks for idle ones looks at all.
pub(super) const IN_STATE: &str =
    select_sessions!("WHERE s.state = json_extract(:states, '$[0]') ", "ORDER BY s.session_id");

/// All, by id.
pub(super) const BY_ID: &str = select_sessions!("WHERE true ", "ORDER BY s.session_id");

/// See [`outlast_store::Ledger::list_sessions`].
pub(crate) fn list_sessions(view: &View<'_>, query: &ListSessions) -> Tried<Vec<SessionHead>> {
    let sql = match (query.newest, &query.tenant, query.states.len()) {
        (true, Some(_), _) => NEWEST_OF_TENANT,
        (true, None, _) => NEWEST,
        (false, _, 1) => IN_STATE,
        (false, ..) => BY_ID,
    };
    let cutoff = match query.idle_for {
        None => i64::MAX,
        Some(idle) => view.wall.checked_sub(millis(idle)).map_or(-1, int),
    };
    let states: Vec<&str> = query.states.iter().map(|state| state.as_str()).collect();
    let mut statement = view.db.prepare_cached(sql)?;
    let mut rows = statement.query(named_params! {
        ":after": query.after.as_ref().map_or("", SessionId::as_str),
        ":tenant": query.tenant.as_ref().map(Tenant::as_str),
        ":states": (!states.is_empty()).then(|| to_json(&states)).transpose()?,
        ":cutoff": cutoff,
        ":idle": query.idle_for.is_some(),
        ":limit": int(query.limit as u64),
    })?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read_head(view, row)?);
    }
    Ok(found)
}
