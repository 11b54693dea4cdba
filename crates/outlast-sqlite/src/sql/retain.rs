//! What has aged out.

use std::time::Duration;

use outlast_store::Swept;
use rusqlite::OptionalExtension;

use super::append::SEQ_BITS;
use super::context::{Tx, View, int, millis, uint};
use crate::failure::Tried;

/// The time before which a run must have ended.
fn cutoff(view: &View<'_>, ended_for: Duration) -> Option<i64> {
    view.wall.checked_sub(millis(ended_for)).map(int)
}

/// See [`outlast_store::Log::expire_events`].
pub(crate) fn expire_events(tx: &Tx<'_>, ended_for: Duration, max_rows: usize) -> Tried<Swept> {
    let mut swept = Swept::default();
    let Some(cutoff) = cutoff(tx, ended_for) else { return Ok(swept) };
    // Runs without events count as well, so that a step is bounded whatever it finds.
    for _ in 0..max_rows {
        let found: Option<i64> = tx
            .db
            .prepare_cached(
                "SELECT run FROM runs WHERE finished_at IS NOT NULL AND expired < 2 AND finished_at <= ?1 \
                 ORDER BY finished_at LIMIT 1",
            )?
            .query_row([cutoff], |row| row.get(0))
            .optional()?;
        let Some(run) = found else { return Ok(swept) };
        let room = max_rows as u64 - swept.rows;
        if room == 0 {
            break;
        }
        let deleted = tx
            .db
            .prepare_cached(
                "DELETE FROM events WHERE id IN (SELECT id FROM events WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3)",
            )?
            .execute((run << SEQ_BITS, (run + 1) << SEQ_BITS, int(room)))? as u64;
        let last = deleted < room;
        tx.db
            .prepare_cached("UPDATE runs SET expired = ?2, cursor = NULL WHERE run = ?1")?
            .execute((run, if last { 2 } else { 1 }))?;
        swept.rows += deleted;
        swept.runs += u64::from(last);
    }
    Ok(Swept { more: true, ..swept })
}

/// See [`outlast_store::Log::count_expired`].
pub(crate) fn count_expired(view: &View<'_>, ended_for: Duration) -> Tried<Swept> {
    let Some(cutoff) = cutoff(view, ended_for) else { return Ok(Swept::default()) };
    let (runs, rows): (i64, Option<i64>) = view
        .db
        .prepare_cached(
            "SELECT count(*), sum(tail) FROM runs \
             WHERE finished_at IS NOT NULL AND expired < 2 AND finished_at <= ?1",
        )?
        .query_row([cutoff], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(Swept { runs: uint(runs), rows: rows.map_or(0, uint), more: false })
}
