//! A run's own records: its start, its messages and its end.

use outlast_core::RunId;
use outlast_store::NewRecord;

use super::session::Session;
use crate::failure::Tried;
use crate::sql::context::{Tx, Value, get, int, uint};
use crate::sql::messages::body_elsewhere;

/// All in one statement, and messages without a way through this program: each record is added unless it is there, and
/// numbered after those before it. Whether a message is there is asked as a value, for each by its id: as a join it might be
/// answered by a look at the whole ledger. A message's checksum is that of [`outlast_core::ledger::checksum`], unless its body is
/// elsewhere.
const ADD: &str = concat!(
    "WITH start AS (\
        INSERT INTO records (session, seq, at, record_id, kind, skip, sum, body) \
        SELECT $1, $2::bigint + 1, $3, $6, 'run_started', false, $7, $8 \
        WHERE $6::text IS NOT NULL AND NOT EXISTS (SELECT 1 FROM records WHERE session = $1 AND record_id = $6) \
        RETURNING seq\
    ), gone AS (\
        DELETE FROM messages AS m WHERE m.run = $4 AND $9::text IS NOT NULL \
        RETURNING m.ordinal, m.json, ",
    body_elsewhere!("m"),
    " AS blob_key, m.blob_size, m.sum\
    ), fresh AS (\
        SELECT row_number() OVER (ORDER BY said.ordinal) AS n, said.record_id, said.json, said.blob_key, \
            CASE WHEN said.blob_key IS NOT NULL THEN said.blob_size END AS blob_size, \
            CASE WHEN said.blob_key IS NOT NULL THEN said.sum \
                ELSE encode(sha256(convert_to(E'message\\n' || said.record_id || E'\\n' || said.json, 'UTF8')), 'hex') \
            END AS sum \
        FROM (SELECT *, 'message/' || $5 || '/' || ordinal AS record_id FROM gone) AS said \
        WHERE (SELECT r.seq FROM records r WHERE r.session = $1 AND r.record_id = said.record_id) IS NULL\
    ), moved AS (\
        INSERT INTO records (session, seq, at, record_id, kind, skip, sum, body, blob_key, blob_size) \
        SELECT $1, $2 + (SELECT count(*) FROM start) + n, $3, record_id, 'message', false, sum, json, blob_key, blob_size \
        FROM fresh RETURNING seq\
    ), finish AS (\
        INSERT INTO records (session, seq, at, record_id, kind, skip, sum, body) \
        SELECT $1, $2 + (SELECT count(*) FROM start) + (SELECT count(*) FROM moved) + 1, $3, $9, 'run_ended', false, $10, $11 \
        WHERE $9::text IS NOT NULL AND NOT EXISTS (SELECT 1 FROM records WHERE session = $1 AND record_id = $9) \
        RETURNING seq\
    ) SELECT (SELECT count(*) FROM start), (SELECT count(*) FROM moved), (SELECT count(*) FROM finish)"
);

/// A run, and what of it the ledger is to be given.
pub(in crate::sql) struct OfRun<'r> {
    /// The key of its row.
    pub(in crate::sql) run: i64,
    pub(in crate::sql) run_id: &'r RunId,
    /// The record of its start, where it may be missing.
    pub(in crate::sql) started: Option<NewRecord>,
    /// The record of its end, where it has ended: then its messages go, too.
    pub(in crate::sql) ended: Option<NewRecord>,
    /// When happened last what they tell of.
    pub(in crate::sql) active_at: u64,
}

/// Gives the ledger what it has not yet of a run. What the session is after it is for the caller to write.
pub(in crate::sql) async fn add_of_run(tx: &Tx<'_>, session: &mut Session, of: OfRun<'_>) -> Tried<()> {
    session.fold(tx).await?;
    let (started, ended) = (Columns::of(&of.started), Columns::of(&of.ended));
    let values: [Value<'_>; 11] = [
        &session.key,
        &int(session.tip),
        &int(session.now),
        &of.run,
        &of.run_id.as_str(),
        &started.id,
        &started.sum,
        &started.body,
        &ended.id,
        &ended.sum,
        &ended.body,
    ];
    let row = tx.one(ADD, &values).await?;
    let count = |column| get::<i64>(&row, column).map(uint);
    if let Some(new) = of.started.filter(|_| matches!(count(0), Ok(1))) {
        session.take(&new, of.active_at);
    }
    session.take_messages(count(1)?, of.active_at);
    if let Some(new) = of.ended.filter(|_| matches!(count(2), Ok(1))) {
        session.take(&new, of.active_at);
    }
    Ok(())
}

/// A record by columns.
struct Columns<'r> {
    id: Option<&'r str>,
    sum: Option<String>,
    body: Option<String>,
}

impl<'r> Columns<'r> {
    fn of(new: &'r Option<NewRecord>) -> Columns<'r> {
        let new = new.as_ref();
        Columns {
            id: new.map(|new| new.id.as_str()),
            sum: new.map(NewRecord::sum),
            body: new.map(|new| new.record.body()),
        }
    }
}
