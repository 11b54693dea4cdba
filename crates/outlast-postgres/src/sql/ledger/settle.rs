//! Giving a ledger what hosts of the version before have left elsewhere.

use std::collections::HashMap;

use outlast_core::transcript::Message;
use outlast_core::{Tenant, ThreadId};
use outlast_store::{SessionHead, run_ended, run_started};

use super::head::{HAS_RUNS, session_in};
use super::run::{OfRun, add_of_run};
use super::session::Session;
use crate::failure::Tried;
use crate::sql::context::{Tx, get};
use crate::sql::record::{record, select_records};

/// How many runs are looked at in one statement.
const BATCH: i64 = 200;

const UNSETTLED: &str = select_records!(
    "WHERE r.tenant = $1 AND r.thread_id = $2 AND r.ledgered < 2 AND r.run <> $3 AND r.run > $4 \
     AND (r.ledgered = 0 OR r.status NOT IN ('running', 'interrupted')) ORDER BY r.run LIMIT $5"
);

/// Adds the records of the thread's runs, in the order of their acceptance, that are not there yet; of a live one its start.
/// The row of a live run is left as it is: its driver locks that before the session's. `besides` is a run whose own affairs
/// the caller looks after, or 0.
pub(in crate::sql) async fn settle(tx: &Tx<'_>, session: &mut Session, besides: i64) -> Tried<()> {
    if !session.unsettled || !session.is_active() {
        return Ok(());
    }
    let mut after = 0_i64;
    loop {
        let (tenant, thread) = (session.tenant.clone(), session.thread_id.clone());
        let rows = tx.all(UNSETTLED, &[&tenant.as_str(), &thread.as_str(), &besides, &after, &BATCH]).await?;
        let keys = rows.iter().map(|row| get(row, 30)).collect::<Tried<Vec<i64>>>()?;
        let inputs = inputs(tx, &keys).await?;
        let mut ended = Vec::new();
        for (row, key) in rows.iter().zip(&keys) {
            let run = record(row)?;
            let input = inputs.get(key).map(Vec::as_slice).unwrap_or_default();
            let started = run_started(&run.run_id, &run.agent, run.model.as_deref(), input);
            let over = run.status.is_terminal();
            let of = OfRun {
                run: *key,
                run_id: &run.run_id,
                started: (get::<i16>(row, 31)? == 0).then_some(started),
                ended: over.then(|| run_ended(&run)),
                // It is no activity to take note of what happened long ago.
                active_at: run.finished_at.unwrap_or(run.started_at),
            };
            add_of_run(tx, session, of).await?;
            ended.extend(over.then_some(*key));
        }
        tx.write("UPDATE runs SET ledgered = 2 WHERE run = ANY ($1)", &[&ended]).await?;
        match keys.last() {
            Some(last) if keys.len() == BATCH as usize => after = *last,
            _ => break,
        }
    }
    session.unsettled = false;
    session.save(tx).await
}

/// What the user said at the beginning of each of these runs. A title is all that is made of it, so what cannot be read is
/// passed over.
async fn inputs(tx: &Tx<'_>, runs: &[i64]) -> Tried<HashMap<i64, Vec<Message>>> {
    let rows = tx
        .all(
            "SELECT run, json FROM messages WHERE run = ANY ($1) AND ordinal < 0 ORDER BY run, ordinal",
            &[&runs],
        )
        .await?;
    let mut inputs: HashMap<i64, Vec<Message>> = HashMap::new();
    for row in &rows {
        if let Ok(message) = serde_json::from_str(get(row, 1)?) {
            inputs.entry(get(row, 0)?).or_default().push(message);
        }
    }
    Ok(inputs)
}

/// What the user said at the beginning of this run.
pub(in crate::sql) async fn input(tx: &Tx<'_>, run: i64) -> Tried<Vec<Message>> {
    Ok(inputs(tx, &[run]).await?.remove(&run).unwrap_or_default())
}

/// See [`outlast_store::Ledger::settle_session`].
pub(crate) async fn settle_session(
    tx: &Tx<'_>,
    tenant: &Tenant,
    thread: &ThreadId,
) -> Tried<Option<SessionHead>> {
    let mut session = match Session::lock(tx, tenant, thread, 0).await? {
        Some(session) => session,
        None if !has_runs(tx, tenant, thread).await? => return Ok(None),
        None => Session::lock_or_make(tx, tenant, thread, 0, false).await?,
    };
    settle(tx, &mut session, 0).await?;
    session_in(tx, tenant, &session.id).await
}

/// Whether the thread has ever had a run.
pub(super) async fn has_runs(tx: &Tx<'_>, tenant: &Tenant, thread: &ThreadId) -> Tried<bool> {
    get(&tx.one(HAS_RUNS, &[&tenant.as_str(), &thread.as_str()]).await?, 0)
}
