//! Who watches a run, and whether it gets on.

use outlast_core::decide::Fenced;
use outlast_core::run::ClaimToken;
use outlast_core::{OwnerId, RunId};
use outlast_store::{PresenceUntil, WriteError};

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

/// See [`outlast_store::Runs::note_stall`].
pub(crate) fn note_stall(tx: &Tx<'_>, token: &ClaimToken) -> Tried<Result<u32, WriteError>> {
    let Some(head) = Head::find(tx, &token.run_id)? else {
        return Ok(Err(Fenced::RunNotFound(token.run_id.clone()).into()));
    };
    if let Err(fenced) = head.facts.fence(token) {
        return Ok(Err(fenced.into()));
    }
    let count: u32 = tx
        .db
        .prepare_cached(
            "UPDATE runs SET stalls = CASE WHEN stalled_at = tail THEN stalls + 1 ELSE 1 END, stalled_at = tail, \
             lease_owner = NULL, lease_nonce = NULL, lease_boot = NULL, lease_until = NULL WHERE run = ?1 \
             RETURNING stalls",
        )?
        .query_row([head.run], |row| row.get(0))?;
    tx.touch(&token.run_id);
    Ok(Ok(count))
}
