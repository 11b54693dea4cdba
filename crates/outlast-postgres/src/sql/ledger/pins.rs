//! Pins of snapshots in progress.
//!
//! A pin that has run out keeps its row until it is let go of, so that whoever comes back late, however late, is told.

use std::time::Duration;

use outlast_core::{Nonce, OwnerId};
use outlast_store::Pin;

use crate::failure::Tried;
use crate::sql::context::{Tx, get, millis, number, parsed};

/// See [`outlast_store::Ledger::pin`]. Whether it still holds is looked at with the row locked.
pub(crate) async fn pin(tx: &Tx<'_>, pin: &Nonce, owner: &OwnerId, lasts: Duration) -> Tried<Option<u64>> {
    let row = tx
        .maybe(
            "INSERT INTO pins AS p (pin, owner, since, until_time) \
             SELECT $1, $2, now, now + $3 FROM outlast_now() AS now \
             ON CONFLICT (pin) DO UPDATE SET until_time = outlast_now() + $3 WHERE p.until_time > outlast_now() \
             RETURNING since",
            &[&pin.as_str(), &owner.as_str(), &millis(lasts)],
        )
        .await?;
    row.map(|row| number(&row, 0)).transpose()
}

/// Whether the pin holds. Whoever asks for all pins waits until this transaction has ended.
pub(super) async fn pin_holds(tx: &Tx<'_>, pin: &Nonce) -> Tried<bool> {
    let row = tx
        .maybe(
            "WITH locked AS (SELECT until_time FROM pins WHERE pin = $1 FOR UPDATE) \
             SELECT until_time > outlast_now() FROM locked",
            &[&pin.as_str()],
        )
        .await?;
    row.map_or(Ok(false), |row| get(&row, 0))
}

/// See [`outlast_store::Ledger::unpin`].
pub(crate) async fn unpin(tx: &Tx<'_>, pin: &Nonce) -> Tried<()> {
    tx.write("DELETE FROM pins WHERE pin = $1", &[&pin.as_str()]).await?;
    Ok(())
}

/// See [`outlast_store::Ledger::pins`]. A pin may run out between the look of a write that relies on it and that write's
/// commit. So every pin is locked before its time is looked at, whether it has run out or not: what was under way is over
/// then, and whoever reads the ledgers after the pins finds in them what the pin was for; what looks later finds that the
/// pin has run out.
pub(crate) async fn pins(tx: &Tx<'_>) -> Tried<Vec<Pin>> {
    let rows = tx
        .all(
            "WITH locked AS (SELECT pin, owner, since, until_time FROM pins FOR SHARE) \
             SELECT pin, owner, since FROM locked WHERE until_time > outlast_now() ORDER BY since, pin",
            &[],
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(Pin {
                pin: Nonce::from_stored(get::<String>(row, 0)?),
                owner: parsed("owner", OwnerId::new(get::<&str>(row, 1)?))?,
                since: number(row, 2)?,
            })
        })
        .collect()
}
