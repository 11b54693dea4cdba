//! Who watches a run.

use outlast_core::{OwnerId, RunId};
use outlast_store::PresenceUntil;

use super::context::{Tx, int, millis};
use super::head::Head;
use crate::failure::Tried;

/// See [`outlast_store::Runs::presence`].
pub(crate) fn presence(tx: &Tx<'_>, run_id: &RunId, host: &OwnerId, until: PresenceUntil) -> Tried<()> {
    // Nobody asks whether an ended run is watched.
    let Some(head) = Head::find(tx, run_id)?.filter(|head| !head.facts.status.is_terminal()) else {
        return Ok(());
    };
    match until {
        PresenceUntil::For(time) => tx
            .db
            .prepare_cached(
                "INSERT INTO presence (run, host, until) VALUES (?1, ?2, ?3) \
                 ON CONFLICT DO UPDATE SET until = excluded.until",
            )?
            .execute((head.run, host.as_str(), int(tx.wall.saturating_add(millis(time)))))?,
        // The row stays: it says when the viewer left.
        PresenceUntil::Left => tx
            .db
            .prepare_cached("UPDATE presence SET until = min(until, ?3) WHERE run = ?1 AND host = ?2")?
            .execute((head.run, host.as_str(), int(tx.wall)))?,
    };
    Ok(())
}
