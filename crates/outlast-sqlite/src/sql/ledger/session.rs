//! The row of a session.

use outlast_core::decide::SessionState;
use outlast_core::ledger::{Fold, SessionId};
use outlast_core::{Tenant, ThreadId};
use outlast_store::{SessionHead, SessionName};
use rusqlite::{OptionalExtension, Row};

use super::leases;
use crate::failure::{Failure, Tried};
use crate::sql::append::SEQ_BITS;
use crate::sql::context::{Tx, View, int, parsed, uint};

/// What writes to a ledger are decided on, and what they change.
pub(crate) struct Session {
    pub(super) key: i64,
    pub(super) id: SessionId,
    pub(crate) state: SessionState,
    pub(super) tip: u64,
    pub(super) barrier: u64,
    pub(super) active_at: u64,
    /// The stored fold, as it was read.
    pub(super) fold: Option<String>,
}

macro_rules! select_sessions {
    ($tail:literal) => {
        concat!(
            "SELECT s.session, s.session_id, s.state, s.tip, s.barrier, s.active_at, s.fold FROM sessions s ",
            $tail
        )
    };
}

impl Session {
    /// The thread's session.
    pub(crate) fn of_thread(view: &View<'_>, tenant: &Tenant, thread: &ThreadId) -> Tried<Option<Session>> {
        let mut statement =
            view.db.prepare_cached(select_sessions!("WHERE s.tenant = ?1 AND s.thread_id = ?2"))?;
        statement.query_row((tenant.as_str(), thread.as_str()), |row| Ok(read(row))).optional()?.transpose()
    }

    /// The session of the run's thread.
    pub(super) fn of_run(view: &View<'_>, run: i64) -> Tried<Option<Session>> {
        let mut statement = view.db.prepare_cached(select_sessions!(
            "JOIN runs r ON r.tenant = s.tenant AND r.thread_id = s.thread_id WHERE r.run = ?1"
        ))?;
        statement.query_row([run], |row| Ok(read(row))).optional()?.transpose()
    }

    /// The session of this id.
    pub(super) fn by_id(view: &View<'_>, id: &SessionId) -> Tried<Option<Session>> {
        let mut statement = view.db.prepare_cached(select_sessions!("WHERE s.session_id = ?1"))?;
        statement.query_row([id.as_str()], |row| Ok(read(row))).optional()?.transpose()
    }

    /// Makes the thread's session, of which there is none.
    pub(super) fn create(tx: &Tx<'_>, tenant: &Tenant, thread: &ThreadId) -> Tried<Session> {
        let id = SessionId::of(tx.deployment, tenant, thread);
        let fold = Fold::empty().to_json();
        tx.db
            .prepare_cached(
                "INSERT INTO sessions (session_id, tenant, thread_id, state, created_at, active_at, tip, barrier, fold) \
                 VALUES (?1, ?2, ?3, 'active', ?4, ?4, 0, 0, ?5)",
            )?
            .execute((id.as_str(), tenant.as_str(), thread.as_str(), int(tx.wall), &fold))?;
        Ok(Session {
            key: tx.db.last_insert_rowid(),
            id,
            state: SessionState::Active,
            tip: 0,
            barrier: 0,
            active_at: tx.wall,
            fold: Some(fold),
        })
    }

    /// The key of a record. Of numbers that no record has, the last that one could have.
    pub(super) fn record(&self, seq: u64) -> i64 {
        (self.key << SEQ_BITS) | int(seq.min(u64::from(u32::MAX)))
    }
}

fn read(row: &Row<'_>) -> Tried<Session> {
    Ok(Session {
        key: row.get(0)?,
        id: parsed("session id", SessionId::parse(&row.get::<_, String>(1)?))?,
        state: state_of(&row.get::<_, String>(2)?)?,
        tip: uint(row.get(3)?),
        barrier: uint(row.get(4)?),
        active_at: uint(row.get(5)?),
        fold: row.get(6)?,
    })
}

fn state_of(text: &str) -> Tried<SessionState> {
    SessionState::parse(text).ok_or_else(|| Failure::Damaged(format!("{text:?} is no state of a session")))
}

/// A query for sessions without their records; what follows is its condition.
macro_rules! select_heads {
    ($($tail:literal),+) => {
        concat!(
            "SELECT s.session_id, s.tenant, s.thread_id, s.state, s.created_at, s.active_at, s.deleted_at, s.tip, ",
            "s.barrier, s.fold, l.epoch, l.owner, l.boot, l.until, l.note, l.noted_at ",
            "FROM sessions s LEFT JOIN leases l ON l.name = 'session/' || s.session_id ",
            $($tail),+
        )
    };
}
pub(super) use select_heads;

/// See [`outlast_store::Ledger::session`]. Reads one row, however long the ledger is.
pub(crate) fn head(view: &View<'_>, tenant: &Tenant, name: &SessionName) -> Tried<Option<SessionHead>> {
    let (sql, name) = match name {
        SessionName::Thread(thread) => {
            (select_heads!("WHERE s.tenant = ?1 AND s.thread_id = ?2"), thread.as_str())
        }
        SessionName::Id(id) => (select_heads!("WHERE s.tenant = ?1 AND s.session_id = ?2"), id.as_str()),
    };
    let mut statement = view.db.prepare_cached(sql)?;
    statement.query_row((tenant.as_str(), name), |row| Ok(read_head(view, row))).optional()?.transpose()
}

/// Reads a row of [`select_heads`].
pub(super) fn read_head(view: &View<'_>, row: &Row<'_>) -> Tried<SessionHead> {
    let state = state_of(&row.get::<_, String>(3)?)?;
    let tip = uint(row.get(7)?);
    let fold: Option<String> = row.get(9)?;
    let epoch: Option<i64> = row.get(10)?;
    let lease = match (epoch, row.get::<_, Option<String>>(11)?) {
        (Some(epoch), Some(owner)) => {
            leases::seen(view, uint(epoch), owner, &row.get::<_, String>(12)?, uint(row.get(13)?))?
        }
        _ => None,
    };
    let note: Option<i64> = row.get(14)?;
    let noted_at: Option<i64> = row.get(15)?;
    Ok(SessionHead {
        session_id: parsed("session id", SessionId::parse(&row.get::<_, String>(0)?))?,
        tenant: Tenant(row.get(1)?),
        thread_id: parsed("thread id", ThreadId::new(row.get::<_, String>(2)?))?,
        state,
        created_at: uint(row.get(4)?),
        active_at: uint(row.get(5)?),
        deleted_at: row.get::<_, Option<i64>>(6)?.map(uint),
        tip,
        barrier: uint(row.get(8)?),
        fold: match state {
            SessionState::Active => fold.and_then(|text| super::fold::of(&text, tip)),
            SessionState::Deleting | SessionState::Deleted => None,
        },
        lease,
        note: note.map(uint).zip(noted_at.map(uint)),
    })
}
