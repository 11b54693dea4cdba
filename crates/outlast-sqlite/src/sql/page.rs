//! Reading the log.

use outlast_core::event::Origin;
use outlast_core::{RunId, Seq, Tenant};
use outlast_store::{LogEnd, Page, ReadError, StoredEvent};
use rusqlite::{OptionalExtension, Row};

use super::append::{SEQ_BITS, event_id};
use super::context::{View, pointer, uint};
use crate::failure::Tried;

/// See [`outlast_store::Log::read`].
pub(crate) fn page(
    view: &View<'_>,
    tenant: &Tenant,
    run_id: &RunId,
    after: Seq,
    max_events: usize,
    max_bytes: usize,
) -> Tried<Result<Page, ReadError>> {
    let found: Option<(i64, i64, bool, i64)> = view
        .db
        .prepare_cached("SELECT run, tail, closed, expired FROM runs WHERE run_id = ?1 AND tenant = ?2")?
        .query_row((run_id.as_str(), tenant.as_str()), |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .optional()?;
    let Some((run, tail, closed, expired)) = found else {
        return Ok(Err(ReadError::RunNotFound(run_id.clone())));
    };
    let tail = Seq(uint(tail));
    if after > tail {
        return Ok(Err(ReadError::OffsetAhead { offset: after, tail }));
    }
    if expired > 0 {
        return Ok(Ok(Page { events: Vec::new(), end: LogEnd::Expired, tail }));
    }
    let end = if closed { LogEnd::Closed } else { LogEnd::Open };
    let wanted = max_events.min(usize::try_from(tail.0 - after.0).unwrap_or(usize::MAX));
    let mut events = Vec::with_capacity(wanted.min(4096));
    if wanted > 0 {
        let mut statement = view.db.prepare_cached(
            "SELECT id, at, origin_byte, origin_index, json, blob_key, blob_size FROM events \
             WHERE id > ?1 AND id <= ?2 ORDER BY id",
        )?;
        let mut rows = statement.query((event_id(run, after), event_id(run, tail)))?;
        let mut bytes = 0;
        while events.len() < wanted
            && let Some(row) = rows.next()?
        {
            let event = event(row)?;
            bytes += event.json.len();
            events.push(event);
            if bytes >= max_bytes {
                break;
            }
        }
    }
    Ok(Ok(Page { events, end, tail }))
}

fn event(row: &Row<'_>) -> Tried<StoredEvent> {
    let id: i64 = row.get(0)?;
    let origin = match row.get::<_, Option<i64>>(2)? {
        None => Origin::Host,
        Some(byte) => Origin::Journal { byte: uint(byte), index: row.get(3)? },
    };
    let seq = Seq(uint(id & ((1 << SEQ_BITS) - 1)));
    Ok(StoredEvent { seq, at: uint(row.get(1)?), origin, json: row.get(4)?, pointer: pointer(row, 5)? })
}
