//! Reading the log.

use deadpool_postgres::Client;
use outlast_core::event::Origin;
use outlast_core::{RunId, Seq, Tenant};
use outlast_store::{LogEnd, Page, ReadError, StoredEvent};
use tokio_postgres::Row;

use super::context::{get, int, number, parsed, uint};
use super::ledger::pointer;
use crate::failure::Tried;

/// The head and the events in one statement, and so of one snapshot. An event joins the page as long as those before it
/// are smaller than the limit.
const PAGE: &str = "\
SELECT head.tail, head.closed, event.seq, event.at, event.origin_byte, event.origin_index, event.json, head.expired, \
    event.blob_key, event.blob_size \
FROM (SELECT run, tail, closed, expired FROM runs WHERE run_id = $1 AND tenant = $2) AS head \
LEFT JOIN LATERAL (\
    SELECT * FROM (\
        SELECT seq, at, origin_byte, origin_index, json, blob_key, blob_size, \
            sum(octet_length(json)) OVER (ORDER BY seq) - octet_length(json) AS before \
        FROM (SELECT * FROM events WHERE run = head.run AND seq > $3 AND seq <= head.tail ORDER BY seq LIMIT $4) AS wanted\
    ) AS sized WHERE before < $5 ORDER BY seq\
) AS event ON true ORDER BY event.seq";

/// See [`outlast_store::Log::read`].
pub(crate) async fn page(
    client: &Client,
    tenant: &Tenant,
    run_id: &RunId,
    after: Seq,
    max_events: usize,
    max_bytes: usize,
) -> Tried<Result<Page, ReadError>> {
    let statement = client.prepare_cached(PAGE).await?;
    let rows = client
        .query(
            &statement,
            &[
                &run_id.as_str(),
                &tenant.as_str(),
                &int(after.0),
                &int(max_events as u64),
                // The sum of sizes is of another type.
                &i64::try_from(max_bytes.max(1)).unwrap_or(i64::MAX),
            ],
        )
        .await?;
    let Some(first) = rows.first() else {
        return Ok(Err(ReadError::RunNotFound(run_id.clone())));
    };
    let tail = Seq(number(first, 0)?);
    if after > tail {
        return Ok(Err(ReadError::OffsetAhead { offset: after, tail }));
    }
    if get::<i16>(first, 7)? > 0 {
        return Ok(Ok(Page { events: Vec::new(), end: LogEnd::Expired, tail }));
    }
    let end = if get(first, 1)? { LogEnd::Closed } else { LogEnd::Open };
    let events = rows.iter().filter_map(|row| event(row).transpose()).collect::<Tried<Vec<_>>>()?;
    Ok(Ok(Page { events, end, tail }))
}

/// The row's event; none where the run has no such event.
fn event(row: &Row) -> Tried<Option<StoredEvent>> {
    let Some(seq) = get::<Option<i64>>(row, 2)? else {
        return Ok(None);
    };
    let origin = match get::<Option<i64>>(row, 4)? {
        None => Origin::Host,
        Some(byte) => {
            let index = get::<Option<i32>>(row, 5)?.unwrap_or(0);
            Origin::Journal { byte: uint(byte), index: u32::try_from(index).unwrap_or(0) }
        }
    };
    let json = parsed("event", String::from_utf8(get(row, 6)?))?;
    Ok(Some(StoredEvent {
        seq: Seq(uint(seq)),
        at: number(row, 3)?,
        origin,
        json,
        pointer: pointer(row, 8)?,
    }))
}
