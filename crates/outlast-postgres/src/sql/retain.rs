//! What has aged out.

use std::time::Duration;

use deadpool_postgres::Client;
use outlast_store::Swept;

use super::context::{Tx, get, int, millis, number, uint};
use crate::failure::Tried;

/// See [`outlast_store::Log::expire_events`]. Runs that another host is at are passed over.
pub(crate) async fn expire_events(tx: &Tx<'_>, ended_for: Duration, max_rows: usize) -> Tried<Swept> {
    let mut swept = Swept::default();
    // Runs without events count as well, so that a step is bounded whatever it finds.
    for _ in 0..max_rows {
        let found = tx
            .maybe(
                "SELECT run FROM runs WHERE finished_at IS NOT NULL AND expired < 2 AND finished_at <= outlast_now() - $1 \
                 ORDER BY finished_at LIMIT 1 FOR UPDATE SKIP LOCKED",
                &[&millis(ended_for)],
            )
            .await?;
        let Some(found) = found else { return Ok(swept) };
        let run: i64 = get(&found, 0)?;
        let room = max_rows as u64 - swept.rows;
        if room == 0 {
            break;
        }
        let deleted = tx
            .write(
                "DELETE FROM events WHERE run = $1 AND seq IN \
                 (SELECT seq FROM events WHERE run = $1 ORDER BY seq LIMIT $2)",
                &[&run, &int(room)],
            )
            .await?;
        let last = deleted < room;
        tx.write(
            "UPDATE runs SET expired = $2, cursor = NULL WHERE run = $1",
            &[&run, &(if last { 2_i16 } else { 1 })],
        )
        .await?;
        swept.rows += deleted;
        swept.runs += u64::from(last);
    }
    Ok(Swept { more: true, ..swept })
}

/// See [`outlast_store::Log::count_expired`].
pub(crate) async fn count_expired(client: &Client, ended_for: Duration) -> Tried<Swept> {
    let statement = client
        .prepare_cached(
            "SELECT count(*), coalesce(sum(tail), 0)::bigint FROM runs \
             WHERE finished_at IS NOT NULL AND expired < 2 AND finished_at <= outlast_now() - $1",
        )
        .await?;
    let row = client.query_one(&statement, &[&millis(ended_for)]).await?;
    Ok(Swept { runs: number(&row, 0)?, rows: uint(get(&row, 1)?), more: false })
}
