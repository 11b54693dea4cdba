//! Adding records that belong to no run's beginning or end.

use outlast_core::decide::{RecordDecision, RecordsAsk, RecordsFacts, RecordsRefusal, SessionState};
use outlast_core::ledger::{Kind, SessionId};
use outlast_store::{AppendRecords, NewRecord, RecordAppended, RecordsError, SessionName};
use rusqlite::OptionalExtension;

use super::bodies::condemned;
use super::entries::Entries;
use super::session::Session;
use super::settle::settle;
use super::{leases, pins};
use crate::failure::{Failure, Tried};
use crate::sql::context::{Tx, View, uint};

/// See [`outlast_store::Ledger::append_records`].
pub(crate) fn append_records(
    tx: &Tx<'_>,
    request: &AppendRecords,
) -> Tried<Result<Vec<RecordAppended>, RecordsError>> {
    let AppendRecords { tenant, thread_id, .. } = request;
    let session = Session::of_thread(tx, tenant, thread_id)?;
    // A refusal leaves what this has added: it was due whatever becomes of the request.
    let session = settle(tx, session, tenant, thread_id)?;
    if session.is_none() && !request.create {
        let name = SessionName::Thread(thread_id.clone());
        return Ok(Err(RecordsRefusal::SessionNotFound(name.to_string()).into()));
    }
    let sums: Vec<String> = request.records.iter().map(NewRecord::sum).collect();
    let ask = RecordsAsk {
        expected_tip: request.expected_tip,
        records: request
            .records
            .iter()
            .map(|new| new.id.as_str())
            .zip(sums.iter().map(String::as_str))
            .collect(),
        barrier: request.barrier_of_bodies(),
    };
    let facts = facts(tx, request, session.as_ref())?;
    let decided = match facts.append(&ask, request.lease.as_ref().map(|lease| lease.epoch)) {
        Ok(decided) => decided,
        Err(refusal) => return Ok(Err(refusal.into())),
    };
    let appended = write(tx, request, session, &decided)?;
    if let Some(pin) = &request.pin {
        pins::unpin(tx, pin)?;
    }
    Ok(Ok(appended))
}

fn facts(tx: &Tx<'_>, request: &AppendRecords, session: Option<&Session>) -> Tried<RecordsFacts> {
    let mut existing = Vec::with_capacity(request.records.len());
    let mut condemned_keys = Vec::new();
    for new in &request.records {
        existing.push(match session {
            Some(session) => find(tx, session, &new.id)?,
            None => None,
        });
        if let (Some(session), Some(pointer)) = (session, new.pointer())
            && condemned(tx, session, &pointer.key)?
        {
            condemned_keys.push(pointer.key.clone());
        }
    }
    Ok(RecordsFacts {
        session_id: match session {
            Some(session) => session.id.clone(),
            None => SessionId::of(tx.deployment, &request.tenant, &request.thread_id),
        },
        state: session.map_or(SessionState::Active, |session| session.state),
        tip: session.map_or(0, |session| session.tip),
        barrier: session.map_or(0, |session| session.barrier),
        lease_held: request.lease.as_ref().map(|lease| leases::holds(tx, lease)).transpose()?,
        pin_holds: request.pin.as_ref().map(|pin| pins::holds(tx, pin)).transpose()?,
        existing,
        condemned: condemned_keys,
    })
}

/// The number and the checksum of the record with this id.
fn find(view: &View<'_>, session: &Session, id: &str) -> Tried<Option<(u64, String)>> {
    let found: Option<(i64, String)> = view
        .db
        .prepare_cached("SELECT id, sum FROM records WHERE session = ?1 AND record_id = ?2")?
        .query_row((session.key, id), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(found.map(|(key, sum)| (uint(key - session.record(0)), sum)))
}

/// Writes what is decided.
fn write(
    tx: &Tx<'_>,
    request: &AppendRecords,
    session: Option<Session>,
    decided: &[RecordDecision],
) -> Tried<Vec<RecordAppended>> {
    let session = match session {
        Some(session) => session,
        None => Session::create(tx, &request.tenant, &request.thread_id)?,
    };
    let added = |decision: &RecordDecision| match decision {
        RecordDecision::Added(seq) => Some(RecordAppended { seq: *seq, appended: false }),
        RecordDecision::Add => None,
    };
    // Nothing new changes nothing, not even the row: asking twice costs no write.
    if let Some(known) = decided.iter().map(added).collect::<Option<Vec<_>>>() {
        return Ok(known);
    }
    let mut entries = Entries::open(tx, session)?;
    let mut appended = Vec::with_capacity(decided.len());
    for (decision, new) in decided.iter().zip(&request.records) {
        appended.push(match added(decision) {
            Some(known) => known,
            None => {
                let seq = entries.add(new)?;
                let seq = seq.ok_or_else(|| Failure::Damaged(format!("the index has lost {:?}", new.id)))?;
                if !matches!(new.record.kind(), Kind::Barrier | Kind::SessionStopped) {
                    entries.active(tx.wall);
                }
                RecordAppended { seq, appended: true }
            }
        });
    }
    entries.save()?;
    Ok(appended)
}
