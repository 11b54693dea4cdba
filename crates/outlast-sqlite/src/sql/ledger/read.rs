//! Reading a ledger.

use outlast_core::decide::RecordsRefusal;
use outlast_store::{ReadRecords, RecordPage, RecordsError, StoredRecord};
use rusqlite::{Row, named_params};

use super::session::Session;
use crate::failure::Tried;
use crate::sql::append::SEQ_BITS;
use crate::sql::context::{View, pointer, to_json, uint};

macro_rules! select_records {
    ($condition:literal) => {
        concat!(
            "SELECT id, at, record_id, kind, skip, sum, blob_key, blob_size, body FROM records ",
            "WHERE id > :after AND id <= :tip ",
            $condition,
            " ORDER BY id"
        )
    };
}

/// All, one after the other as they lie there.
pub(super) const ALL: &str = select_records!("AND :session IS NOT NULL AND :kinds IS NULL");

/// Some, found among all.
pub(super) const SOME: &str =
    select_records!("AND :session IS NOT NULL AND kind NOT IN (SELECT value FROM json_each(:kinds))");

/// The few that tell of the workspace, or of what this program does not know, by an index of their own.
pub(super) const WORKSPACE: &str = select_records!(
    "AND session = :session AND kind NOT IN ('message', 'run_started', 'run_ended', 'session_stopped', 'barrier') \
     AND kind NOT IN (SELECT value FROM json_each(:kinds))"
);

/// See [`outlast_store::Ledger::read_records`].
pub(crate) fn read_records(view: &View<'_>, query: &ReadRecords) -> Tried<Result<RecordPage, RecordsError>> {
    let Some(session) = Session::by_id(view, &query.session_id)? else {
        return Ok(Err(RecordsRefusal::SessionNotFound(query.session_id.to_string()).into()));
    };
    let passed_over = query.passed_over();
    let sql = match passed_over.as_slice() {
        [] => ALL,
        _ if query.is_of_workspace() => WORKSPACE,
        _ => SOME,
    };
    let mut statement = view.db.prepare_cached(sql)?;
    let mut rows = statement.query(named_params! {
        ":session": session.key,
        ":after": session.record(query.after),
        ":tip": session.record(session.tip),
        ":kinds": (!passed_over.is_empty()).then(|| to_json(&passed_over)).transpose()?,
    })?;
    let (mut records, mut bytes, mut more) = (Vec::new(), 0, false);
    while let Some(row) = rows.next()? {
        if records.len() >= query.max_records || bytes >= query.max_bytes {
            more = true;
            break;
        }
        let record = read(row)?;
        bytes += record.body.len();
        records.push(record);
    }
    Ok(Ok(RecordPage { records, tip: session.tip, more }))
}

fn read(row: &Row<'_>) -> Tried<StoredRecord> {
    Ok(StoredRecord {
        seq: uint(row.get::<_, i64>(0)? & ((1 << SEQ_BITS) - 1)),
        at: uint(row.get(1)?),
        id: row.get(2)?,
        kind: row.get(3)?,
        skip: row.get(4)?,
        sum: row.get(5)?,
        body: row.get(8)?,
        pointer: pointer(row, 6)?,
    })
}
