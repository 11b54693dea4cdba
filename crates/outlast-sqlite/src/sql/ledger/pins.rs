//! Pins of snapshots in progress.

use std::time::Duration;

use outlast_core::{Nonce, OwnerId};
use outlast_store::Pin;
use rusqlite::OptionalExtension;

use crate::failure::Tried;
use crate::sql::context::{Tx, View, int, millis, parsed, uint};

/// See [`outlast_store::Ledger::pin`].
pub(crate) fn pin(tx: &Tx<'_>, pin: &Nonce, owner: &OwnerId, lasts: Duration) -> Tried<Option<u64>> {
    let until = int(tx.wall.saturating_add(millis(lasts)));
    let found: Option<(i64, i64)> = tx
        .db
        .prepare_cached("SELECT since, until FROM pins WHERE pin = ?1")?
        .query_row([pin.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    match found {
        Some((_, end)) if uint(end) <= tx.wall => return Ok(None),
        Some((since, _)) => {
            tx.db
                .prepare_cached("UPDATE pins SET until = ?2 WHERE pin = ?1")?
                .execute((pin.as_str(), until))?;
            return Ok(Some(uint(since)));
        }
        None => {}
    }
    forget_the_dead(tx)?;
    tx.db
        .prepare_cached("INSERT INTO pins (pin, owner, since, until) VALUES (?1, ?2, ?3, ?4)")?
        .execute((pin.as_str(), owner.as_str(), int(tx.wall), until))?;
    Ok(Some(tx.wall))
}

/// Removes pins that have run out and whose process is dead. One that has run out stays as long as its process lives,
/// however long that is: set again it would look like a new one, and what the snapshot relies on may be gone.
fn forget_the_dead(tx: &Tx<'_>) -> Tried<()> {
    let mut statement = tx.db.prepare_cached("SELECT DISTINCT owner FROM pins WHERE until <= ?1")?;
    let owners: Vec<String> =
        statement.query_map([int(tx.wall)], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for owner in owners.iter().filter(|owner| !tx.is_alive(owner)) {
        tx.db
            .prepare_cached("DELETE FROM pins WHERE owner = ?1 AND until <= ?2")?
            .execute((owner, int(tx.wall)))?;
    }
    Ok(())
}

/// See [`outlast_store::Ledger::unpin`].
pub(crate) fn unpin(tx: &Tx<'_>, pin: &Nonce) -> Tried<()> {
    tx.db.prepare_cached("DELETE FROM pins WHERE pin = ?1")?.execute([pin.as_str()])?;
    Ok(())
}

/// Whether the pin holds.
pub(super) fn holds(view: &View<'_>, pin: &Nonce) -> Tried<bool> {
    let mut statement =
        view.db.prepare_cached("SELECT EXISTS (SELECT 1 FROM pins WHERE pin = ?1 AND until > ?2)")?;
    Ok(statement.query_row((pin.as_str(), int(view.wall)), |row| row.get(0))?)
}

/// See [`outlast_store::Ledger::pins`].
pub(crate) fn pins(view: &View<'_>) -> Tried<Vec<Pin>> {
    let mut statement =
        view.db.prepare_cached("SELECT pin, owner, since FROM pins WHERE until > ?1 ORDER BY pin")?;
    let mut rows = statement.query([int(view.wall)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(Pin {
            pin: Nonce::from_stored(row.get::<_, String>(0)?),
            owner: parsed("owner", OwnerId::new(row.get::<_, String>(1)?))?,
            since: uint(row.get(2)?),
        });
    }
    Ok(found)
}
