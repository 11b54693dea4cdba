//! Which processes are alive.

use std::time::Duration;

use deadpool_postgres::Client;
use outlast_core::OwnerId;
use outlast_store::HostSeen;

use super::context::{Tx, get, millis, number, parsed};
use crate::failure::Tried;

/// See [`outlast_store::Runs::announce`].
pub(crate) async fn announce(tx: &Tx<'_>, host: &HostSeen, lasts: Duration) -> Tried<()> {
    // What ran out long ago tells nobody anything.
    tx.write("DELETE FROM hosts WHERE until_time < outlast_now() - 86400000", &[]).await?;
    tx.write(
        "INSERT INTO hosts (owner, machine, version, since, until_time) \
         VALUES ($1, $2, $3, outlast_now(), outlast_now() + $4) \
         ON CONFLICT (owner) DO UPDATE SET until_time = excluded.until_time",
        &[&host.owner.as_str(), &host.machine, &host.version, &millis(lasts)],
    )
    .await?;
    Ok(())
}

/// See [`outlast_store::Runs::hosts`].
pub(crate) async fn hosts(client: &Client) -> Tried<Vec<HostSeen>> {
    let statement = client
        .prepare_cached(
            "SELECT owner, machine, version, since FROM hosts WHERE until_time > outlast_now() \
             ORDER BY owner COLLATE \"C\"",
        )
        .await?;
    let rows = client.query(&statement, &[]).await?;
    rows.iter()
        .map(|row| {
            Ok(HostSeen {
                owner: parsed("owner", OwnerId::new(get::<&str>(row, 0)?))?,
                machine: get(row, 1)?,
                version: get(row, 2)?,
                since: number(row, 3)?,
            })
        })
        .collect()
}
