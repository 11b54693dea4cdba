//! Who watches a run, and whether it gets on.

use outlast_core::decide::Fenced;
use outlast_core::run::ClaimToken;
use outlast_core::{OwnerId, RunId};
use outlast_store::{PresenceUntil, WriteError};

use super::context::{Tx, get, millis};
use super::head::Head;
use crate::failure::Tried;

/// See [`outlast_store::Runs::presence`].
pub(crate) async fn presence(tx: &Tx<'_>, run_id: &RunId, host: &OwnerId, until: PresenceUntil) -> Tried<()> {
    // Nobody asks whether an ended run is watched. The lock keeps a cancel for want of viewers from being decided
    // while one comes.
    let Some(head) = Head::lock(tx, run_id).await?.filter(|head| !head.facts.status.is_terminal()) else {
        return Ok(());
    };
    match until {
        PresenceUntil::For(time) => {
            tx.write(
                "INSERT INTO presence (run, host, until_time) VALUES ($1, $2, outlast_now() + $3) \
                 ON CONFLICT (run, host) DO UPDATE SET until_time = excluded.until_time",
                &[&head.run, &host.as_str(), &millis(time)],
            )
            .await?
        }
        // The row stays: it says when the viewer left.
        PresenceUntil::Left => {
            tx.write(
                "UPDATE presence SET until_time = least(until_time, outlast_now()) WHERE run = $1 AND host = $2",
                &[&head.run, &host.as_str()],
            )
            .await?
        }
    };
    Ok(())
}

/// See [`outlast_store::Runs::note_stall`].
pub(crate) async fn note_stall(tx: &Tx<'_>, token: &ClaimToken) -> Tried<Result<u32, WriteError>> {
    let Some(head) = Head::lock(tx, &token.run_id).await? else {
        return Ok(Err(Fenced::RunNotFound(token.run_id.clone()).into()));
    };
    if let Err(fenced) = head.facts.fence(token) {
        return Ok(Err(fenced.into()));
    }
    let row = tx
        .one(
            "UPDATE runs SET stalls = CASE WHEN stalled_at = tail THEN stalls + 1 ELSE 1 END, stalled_at = tail, \
             lease_owner = NULL, lease_nonce = NULL, lease_until = NULL WHERE run = $1 RETURNING stalls",
            &[&head.run],
        )
        .await?;
    tx.touch(&token.run_id);
    Ok(Ok(u32::try_from(get::<i32>(&row, 0)?).unwrap_or(0)))
}
