//! Which processes are alive.

use std::time::Duration;

use outlast_core::OwnerId;
use outlast_store::HostSeen;

use super::context::{Tx, View, int, millis, parsed, uint};
use crate::failure::Tried;

/// See [`outlast_store::Runs::announce`].
pub(crate) fn announce(tx: &Tx<'_>, host: &HostSeen, lasts: Duration) -> Tried<()> {
    // What ran out long ago tells nobody anything.
    tx.db
        .prepare_cached("DELETE FROM hosts WHERE until < ?1")?
        .execute([int(tx.wall.saturating_sub(24 * 3600 * 1000))])?;
    tx.db
        .prepare_cached(
            "INSERT INTO hosts (owner, machine, version, since, until) VALUES (?1, ?2, ?3, ?4, ?5) \
             ON CONFLICT DO UPDATE SET until = excluded.until",
        )?
        .execute((
            host.owner.as_str(),
            &host.machine,
            &host.version,
            int(tx.wall),
            int(tx.wall.saturating_add(millis(lasts))),
        ))?;
    Ok(())
}

/// See [`outlast_store::Runs::hosts`]. A process that is known to be dead is none.
pub(crate) fn hosts(view: &View<'_>) -> Tried<Vec<HostSeen>> {
    let mut statement = view
        .db
        .prepare_cached("SELECT owner, machine, version, since FROM hosts WHERE until > ?1 ORDER BY owner")?;
    let mut rows = statement.query([int(view.wall)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let owner: String = row.get(0)?;
        if view.is_alive(&owner) {
            found.push(HostSeen {
                owner: parsed("owner", OwnerId::new(owner))?,
                machine: row.get(1)?,
                version: row.get(2)?,
                since: uint(row.get(3)?),
            });
        }
    }
    Ok(found)
}
