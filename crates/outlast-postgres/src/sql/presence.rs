//! Who watches a run.

use outlast_core::{OwnerId, RunId};
use outlast_store::PresenceUntil;

use super::context::{Tx, millis};
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
