//! Reading records.

use deadpool_postgres::Client;
use outlast_core::decide::RecordsRefusal;
use outlast_core::ledger::Pointer;
use outlast_store::{ReadRecords, RecordPage, RecordsError, StoredRecord};
use tokio_postgres::Row;

use crate::failure::Tried;
use crate::sql::context::{get, int, number, uint};

/// How many records are looked at in one statement. Sizes are added up for all of them, so that a page which is bounded by
/// its size alone would otherwise be as dear as the whole ledger.
const AT_ONCE: usize = 1000;

/// The tip and the records in one statement, and so of one snapshot. A record joins the page as long as those before it are
/// smaller than the limit; one more than may join is looked at, to know whether there is one.
macro_rules! page {
    ($kinds:literal) => {
        concat!(
            "SELECT head.tip, r.seq, r.at, r.record_id, r.kind, r.skip, r.sum, r.body, r.blob_key, r.blob_size, r.looked_at \
             FROM (SELECT session, tip FROM sessions WHERE session_id = $1) AS head LEFT JOIN LATERAL (\
                SELECT * FROM (\
                    SELECT wanted.*, row_number() OVER (ORDER BY seq) AS n, count(*) OVER () AS looked_at, \
                        sum(octet_length(body)) OVER (ORDER BY seq) - octet_length(body) AS before \
                    FROM (\
                        SELECT * FROM records WHERE session = head.session AND seq > $2 ",
            $kinds,
            " ORDER BY seq LIMIT $3::bigint + 1) AS wanted\
                ) AS sized WHERE n <= $3 AND before < $4 ORDER BY seq\
             ) AS r ON true ORDER BY r.seq"
        )
    };
}
const ALL: &str = page!("AND $5::text[] IS NULL");
const SOME: &str = page!("AND kind <> ALL ($5::text[])");
/// These, and what this program does not know, have an index of their own: there are few of them among many, and upkeep
/// reads those of all sessions.
const OF_WORKSPACES: &str = page!(
    "AND kind NOT IN ('message', 'run_started', 'run_ended', 'session_stopped', 'barrier') AND kind <> ALL ($5::text[])"
);

/// See [`outlast_store::Ledger::read_records`]. Records are only ever added, so what several statements read one after the
/// other is as of the last of them.
pub(crate) async fn read_records(
    client: &Client,
    query: &ReadRecords,
) -> Tried<Result<RecordPage, RecordsError>> {
    let kinds = Some(query.passed_over()).filter(|passed_over| !passed_over.is_empty());
    let sql = match &kinds {
        None => ALL,
        Some(_) if query.is_of_workspace() => OF_WORKSPACES,
        Some(_) => SOME,
    };
    let statement = client.prepare_cached(sql).await?;
    let (max_records, max_bytes) = (query.max_records.max(1), query.max_bytes.max(1));
    let mut page = RecordPage { records: Vec::new(), tip: 0, more: false };
    let (mut after, mut bytes) = (query.after, 0);
    loop {
        let at_once = AT_ONCE.min(max_records - page.records.len()) as u64;
        let room = (max_bytes - bytes) as u64;
        let rows = client
            .query(&statement, &[&query.session_id.as_str(), &int(after), &int(at_once), &int(room), &kinds])
            .await?;
        let Some(first) = rows.first() else {
            return Ok(Err(RecordsRefusal::SessionNotFound(query.session_id.to_string()).into()));
        };
        page.tip = number(first, 0)?;
        let looked_at = get::<Option<i64>>(first, 10)?.map_or(0, uint);
        let found = rows.iter().filter_map(|row| record(row).transpose()).collect::<Tried<Vec<_>>>()?;
        page.more = looked_at > found.len() as u64;
        bytes += found.iter().map(|record| record.body.len()).sum::<usize>();
        after = found.last().map_or(after, |record| record.seq);
        page.records.extend(found);
        if !page.more || page.records.len() >= max_records || bytes >= max_bytes {
            return Ok(Ok(page));
        }
    }
}

/// The row's record; none where the ledger has no such record.
fn record(row: &Row) -> Tried<Option<StoredRecord>> {
    let Some(seq) = get::<Option<i64>>(row, 1)? else {
        return Ok(None);
    };
    Ok(Some(StoredRecord {
        seq: uint(seq),
        at: number(row, 2)?,
        id: get(row, 3)?,
        kind: get(row, 4)?,
        skip: get(row, 5)?,
        sum: get(row, 6)?,
        body: get(row, 7)?,
        pointer: pointer(row, 8)?,
    }))
}

/// The pointer in two columns.
pub(in crate::sql) fn pointer(row: &Row, column: usize) -> Tried<Option<Pointer>> {
    let size = get::<Option<i64>>(row, column + 1)?.map_or(0, uint);
    Ok(get::<Option<String>>(row, column)?.map(|key| Pointer { key, size }))
}
