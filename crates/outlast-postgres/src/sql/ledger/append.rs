//! Adding records.

use std::collections::HashMap;

use outlast_core::decide::{RecordDecision, RecordsAsk, RecordsFacts, RecordsRefusal};
use outlast_store::{AppendRecords, NewRecord, RecordAppended, RecordsError, SessionName};

use super::add::add;
use super::leases::lease_held;
use super::pins::{pin_holds, unpin};
use super::session::Session;
use super::settle::has_runs;
use crate::failure::Tried;
use crate::sql::context::{Tx, get, number};

/// See [`outlast_store::Ledger::append_records`]. None: the session is to be settled first, in a transaction of its own. It
/// stays so even if this append is refused, or whoever named the tip that it has seen would never find it there. `settled`:
/// that was done.
pub(crate) async fn append_records(
    tx: &Tx<'_>,
    append: &AppendRecords,
    settled: bool,
) -> Tried<Result<Option<Vec<RecordAppended>>, RecordsError>> {
    let (tenant, thread) = (&append.tenant, &append.thread_id);
    let mut session = match Session::lock(tx, tenant, thread, 0).await? {
        Some(session) => session,
        None if append.create => Session::lock_or_make(tx, tenant, thread, 0, false).await?,
        None if !settled && has_runs(tx, tenant, thread).await? => return Ok(Ok(None)),
        None => {
            let name = SessionName::Thread(thread.clone()).to_string();
            return Ok(Err(RecordsRefusal::SessionNotFound(name).into()));
        }
    };
    if session.unsettled && session.is_active() && !settled {
        return Ok(Ok(None));
    }
    let sums: Vec<String> = append.records.iter().map(NewRecord::sum).collect();
    let ids = append.records.iter().map(|new| new.id.as_str());
    let ask = RecordsAsk {
        expected_tip: append.expected_tip,
        records: ids.zip(sums.iter().map(String::as_str)).collect(),
        barrier: append.barrier_of_bodies(),
    };
    let facts = facts(tx, &session, append).await?;
    let decided = match facts.append(&ask, append.lease.as_ref().map(|lease| lease.epoch)) {
        Ok(decided) => decided,
        Err(refusal) => return Ok(Err(refusal.into())),
    };
    let mut new = Vec::new();
    let mut appended = Vec::with_capacity(decided.len());
    for (decision, record) in decided.into_iter().zip(&append.records) {
        appended.push(match decision {
            RecordDecision::Added(seq) => RecordAppended { seq, appended: false },
            RecordDecision::Add => {
                new.push(record);
                RecordAppended { seq: session.tip + new.len() as u64, appended: true }
            }
        });
    }
    if !new.is_empty() {
        add(tx, &mut session, &new).await?;
    }
    if let Some(pin) = &append.pin {
        unpin(tx, pin).await?;
    }
    Ok(Ok(Some(appended)))
}

async fn facts(tx: &Tx<'_>, session: &Session, append: &AppendRecords) -> Tried<RecordsFacts> {
    let ids: Vec<&str> = append.records.iter().map(|new| new.id.as_str()).collect();
    let rows = tx
        .all(
            // Each by its id, as a query of its own: all at once might be answered by a look at the whole ledger.
            "SELECT asked.id, r.seq, r.sum FROM unnest($2::text[]) AS asked (id) CROSS JOIN LATERAL (\
                SELECT seq, sum FROM records WHERE session = $1 AND record_id = asked.id LIMIT 1\
             ) AS r",
            &[&session.key, &ids],
        )
        .await?;
    let mut known: HashMap<&str, (u64, String)> = HashMap::new();
    for row in &rows {
        known.insert(get(row, 0)?, (number(row, 1)?, get(row, 2)?));
    }
    let keys: Vec<&str> =
        append.records.iter().filter_map(|new| new.pointer().map(|pointer| pointer.key.as_str())).collect();
    Ok(RecordsFacts {
        session_id: session.id.clone(),
        state: session.state,
        tip: session.tip,
        barrier: session.barrier,
        lease_held: match &append.lease {
            None => None,
            Some(lease) => Some(lease_held(tx, lease).await?),
        },
        pin_holds: match &append.pin {
            None => None,
            Some(pin) => Some(pin_holds(tx, pin).await?),
        },
        existing: ids.iter().map(|id| known.get(id).cloned()).collect(),
        condemned: session.condemned(tx, &keys).await?,
    })
}
