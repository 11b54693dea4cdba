//! The end of sessions.

use std::time::Duration;

use outlast_core::decide::{DeleteRefusal, SessionState};
use outlast_core::ledger::SessionId;
use outlast_core::{RunId, Tenant};
use outlast_store::{DeleteError, SessionHead, SessionName, Swept};

use super::bodies::key_range;
use super::head::session_in;
use super::session::Session;
use crate::failure::{Failure, Tried};
use crate::sql::context::{Tx, Value, get, int, millis, parsed, uint};

/// See [`outlast_store::Ledger::begin_delete`]. Live runs are looked for with the session's row locked, in a statement that
/// begins after that; a run that is being accepted has its row written before its acceptance locks the session's. So either
/// it is seen here, or the acceptance sees what is written here.
pub(crate) async fn begin_delete(
    tx: &Tx<'_>,
    tenant: &Tenant,
    name: &SessionName,
    idle_for: Option<Duration>,
) -> Tried<Result<SessionHead, DeleteError>> {
    let session = match name {
        SessionName::Thread(thread) => Session::lock(tx, tenant, thread, 0).await?,
        SessionName::Id(id) => Session::lock_by_id(tx, id).await?,
    };
    let Some(session) = session.filter(|session| session.tenant == *tenant) else {
        return Ok(Err(DeleteRefusal::SessionNotFound(name.to_string()).into()));
    };
    let live = tx
        .maybe(
            "SELECT run_id FROM runs WHERE tenant = $1 AND thread_id = $2 AND status IN ('running', 'interrupted')",
            &[&session.tenant.as_str(), &session.thread_id.as_str()],
        )
        .await?;
    let session_id = session.id.clone();
    if let Some(row) = live {
        let run_id = parsed("run id", RunId::new(get::<&str>(&row, 0)?))?;
        return Ok(Err(DeleteRefusal::Live { session_id, run_id }.into()));
    }
    let used =
        idle_for.is_some_and(|idle| session.active_at.saturating_add(uint(millis(idle))) > session.now);
    if session.is_active() {
        if used {
            return Ok(Err(DeleteRefusal::Used(session_id).into()));
        }
        set_state(tx, &session, SessionState::Deleting).await?;
    }
    match session_in(tx, tenant, &session_id).await? {
        Some(head) => Ok(Ok(head)),
        None => Err(Failure::Damaged(format!("session {session_id} is missing"))),
    }
}

async fn set_state(tx: &Tx<'_>, session: &Session, state: SessionState) -> Tried<()> {
    tx.write("UPDATE sessions SET state = $2 WHERE session = $1", &[&session.key, &state.as_str()]).await?;
    Ok(())
}

/// What a run is made of besides its row, in the order in which it goes: many rows first, each table in steps.
const OF_A_RUN: [&str; 4] = [
    "DELETE FROM events WHERE run = $1 AND seq IN (SELECT seq FROM events WHERE run = $1 ORDER BY seq LIMIT $2)",
    "DELETE FROM messages WHERE run = $1 AND ordinal IN \
     (SELECT ordinal FROM messages WHERE run = $1 ORDER BY ordinal LIMIT $2)",
    "DELETE FROM presence WHERE run = $1 AND host IN (SELECT host FROM presence WHERE run = $1 LIMIT $2)",
    "DELETE FROM specs WHERE run = $1 AND $2::bigint > 0",
];

/// See [`outlast_store::Ledger::delete_rows`]. A live run, which only a host of the version before can have accepted since
/// the deletion began, is left alone until it has ended.
pub(crate) async fn delete_rows(tx: &Tx<'_>, id: &SessionId, max_rows: usize) -> Tried<Swept> {
    let mut swept = Swept::default();
    let Some(session) = Session::lock_by_id(tx, id).await? else { return Ok(swept) };
    if session.state != SessionState::Deleting {
        return Ok(swept);
    }
    let room = |swept: &Swept| int((max_rows as u64).saturating_sub(swept.rows));
    'runs: while room(&swept) > 0 {
        let found = tx
            .maybe(
                "SELECT run FROM runs WHERE tenant = $1 AND thread_id = $2 \
                 AND status NOT IN ('running', 'interrupted') ORDER BY run LIMIT 1 FOR UPDATE",
                &[&session.tenant.as_str(), &session.thread_id.as_str()],
            )
            .await?;
        let Some(found) = found else { break };
        let run: i64 = get(&found, 0)?;
        for sql in OF_A_RUN {
            let wanted = room(&swept);
            swept.rows += tx.write(sql, &[&run, &wanted]).await?;
            if room(&swept) == 0 {
                // To its readers the log has aged out, as a whole and from its first row on.
                let sql = "UPDATE runs SET expired = greatest(expired, 1), cursor = NULL WHERE run = $1";
                tx.write(sql, &[&run]).await?;
                break 'runs;
            }
        }
        swept.rows += tx.write("DELETE FROM runs WHERE run = $1", &[&run]).await?;
        swept.runs += 1;
    }
    let values: [Value<'_>; 2] = [&session.key, &room(&swept)];
    swept.rows += tx
        .write(
            "DELETE FROM records WHERE session = $1 AND seq IN \
             (SELECT seq FROM records WHERE session = $1 ORDER BY seq LIMIT $2)",
            &values,
        )
        .await?;
    let row = tx
        .one(
            "SELECT EXISTS (SELECT 1 FROM records WHERE session = $1) OR EXISTS (SELECT 1 FROM runs \
             WHERE tenant = $2 AND thread_id = $3 AND status NOT IN ('running', 'interrupted'))",
            &[&session.key, &session.tenant.as_str(), &session.thread_id.as_str()],
        )
        .await?;
    Ok(Swept { more: get(&row, 0)?, ..swept })
}

/// See [`outlast_store::Ledger::end_delete`]. Without effect while anything is left.
pub(crate) async fn end_delete(tx: &Tx<'_>, id: &SessionId) -> Tried<()> {
    let Some(session) = Session::lock_by_id(tx, id).await? else { return Ok(()) };
    if session.state != SessionState::Deleting {
        return Ok(());
    }
    let ended = tx
        .write(
            "UPDATE sessions SET state = $4, deleted_at = outlast_now(), tip = 0, fold = NULL WHERE session = $1 \
             AND NOT EXISTS (SELECT 1 FROM records WHERE session = $1) \
             AND NOT EXISTS (SELECT 1 FROM runs WHERE tenant = $2 AND thread_id = $3)",
            &[
                &session.key,
                &session.tenant.as_str(),
                &session.thread_id.as_str(),
                &SessionState::Deleted.as_str(),
            ],
        )
        .await?;
    if ended > 0 {
        let (from, to) = key_range(id);
        tx.write("DELETE FROM condemned WHERE blob_key >= $1 AND blob_key < $2", &[&from, &to]).await?;
    }
    Ok(())
}
