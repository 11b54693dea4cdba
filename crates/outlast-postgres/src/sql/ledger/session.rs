//! A session's row, locked until the transaction ends.
//!
//! Whoever adds to a ledger holds this lock: between the look at the tip and the commit nobody else adds, begins a
//! collection, condemns a body or begins a deletion. A run's row is locked before, a lease's after it.

use outlast_core::decide::SessionState;
use outlast_core::ledger::{Fold, SessionId};
use outlast_core::{Tenant, ThreadId};
use tokio_postgres::Row;

use super::fold::Kept;
use crate::failure::Tried;
use crate::sql::context::{Tx, get, number, parsed, word};

/// Whether runs of a session's thread, besides one, are not in its ledger as they could be: what hosts of the version before
/// have accepted or ended. What a live run's row says of that is never changed for it, since its driver locks that row
/// first, and the session's after it.
macro_rules! unsettled {
    ($session:literal, $besides:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM runs r WHERE r.tenant = ",
            $session,
            ".tenant AND r.thread_id = ",
            $session,
            ".thread_id AND r.ledgered < 2 AND r.run <> ",
            $besides,
            " AND (r.status NOT IN ('running', 'interrupted') OR (r.ledgered = 0 AND NOT EXISTS (\
                SELECT 1 FROM records x WHERE x.session = ",
            $session,
            ".session AND x.record_id = 'run_started/' || r.run_id))))"
        )
    };
}
pub(super) use unsettled;

/// What is selected from the lock is computed once it is held: the time, so that no record is older than the one before it.
macro_rules! lock {
    ($which:literal, $besides:literal) => {
        concat!(
            "WITH locked AS (\
                SELECT session, session_id, tenant, thread_id, state, active_at, tip, barrier, fold FROM sessions WHERE ",
            $which,
            " FOR UPDATE) SELECT locked.*, outlast_now(), ",
            unsettled!("locked", $besides),
            " FROM locked"
        )
    };
}

const OF_THREAD: &str = lock!("tenant = $1 AND thread_id = $2", "$3");
const BY_ID: &str = lock!("session_id = $1", "0");
const MAKE: &str = concat!(
    "INSERT INTO sessions (session_id, tenant, thread_id, state, created_at, active_at, tip, barrier, fold) \
     SELECT $4, $1, $2, $5, now, now, 0, 0, $6 FROM outlast_now() AS now ON CONFLICT DO NOTHING \
     RETURNING session, session_id, tenant, thread_id, state, active_at, tip, barrier, fold, created_at, ",
    unsettled!("sessions", "$3")
);

/// A session that nobody else changes until the transaction ends.
pub(in crate::sql) struct Session {
    /// The key of its row.
    pub(super) key: i64,
    pub(super) id: SessionId,
    pub(super) tenant: Tenant,
    pub(super) thread_id: ThreadId,
    pub(super) state: SessionState,
    pub(super) active_at: u64,
    pub(super) tip: u64,
    pub(super) barrier: u64,
    /// When it was locked.
    pub(super) now: u64,
    /// Whether runs are to be settled first.
    pub(super) unsettled: bool,
    pub(super) kept: Kept,
}

impl Session {
    /// Locks the session of a thread. `besides` is the run whose own affairs the caller looks after, or 0.
    pub(in crate::sql) async fn lock(
        tx: &Tx<'_>,
        tenant: &Tenant,
        thread: &ThreadId,
        besides: i64,
    ) -> Tried<Option<Session>> {
        let row = tx.maybe(OF_THREAD, &[&tenant.as_str(), &thread.as_str(), &besides]).await?;
        row.as_ref().map(read).transpose()
    }

    /// Locks a session.
    pub(super) async fn lock_by_id(tx: &Tx<'_>, id: &SessionId) -> Tried<Option<Session>> {
        let row = tx.maybe(BY_ID, &[&id.as_str()]).await?;
        row.as_ref().map(read).transpose()
    }

    /// Locks the session of a thread, which is made where there is none. `there`: whether there probably is one.
    pub(in crate::sql) async fn lock_or_make(
        tx: &Tx<'_>,
        tenant: &Tenant,
        thread: &ThreadId,
        besides: i64,
        there: bool,
    ) -> Tried<Session> {
        if there && let Some(session) = Session::lock(tx, tenant, thread, besides).await? {
            return Ok(session);
        }
        let id = SessionId::of(tx.deployment, tenant, thread);
        let made = tx
            .maybe(
                MAKE,
                &[
                    &tenant.as_str(),
                    &thread.as_str(),
                    &besides,
                    &id.as_str(),
                    &SessionState::Active.as_str(),
                    &Fold::empty().to_json(),
                ],
            )
            .await?;
        if let Some(row) = made {
            return read(&row);
        }
        // Somebody else has made it, and rows are never deleted.
        read(&tx.one(OF_THREAD, &[&tenant.as_str(), &thread.as_str(), &besides]).await?)
    }

    /// When it was locked.
    pub(in crate::sql) fn now(&self) -> u64 {
        self.now
    }

    /// Whether anything may be added.
    pub(in crate::sql) fn is_active(&self) -> bool {
        self.state == SessionState::Active
    }
}

fn read(row: &Row) -> Tried<Session> {
    let tip = number(row, 6)?;
    Ok(Session {
        key: get(row, 0)?,
        id: parsed("session id", SessionId::parse(get(row, 1)?))?,
        tenant: Tenant(get(row, 2)?),
        thread_id: parsed("thread id", ThreadId::new(get::<&str>(row, 3)?))?,
        state: word("state of a session", get(row, 4)?, SessionState::parse)?,
        active_at: number(row, 5)?,
        tip,
        barrier: number(row, 7)?,
        kept: Kept::read(get(row, 8)?, tip),
        now: number(row, 9)?,
        unsettled: get(row, 10)?,
    })
}
