//! Leases on sessions. Their time is the database's, read once the lease's row is locked.

use std::time::Duration;

use outlast_core::decide::LeaseRefusal;
use outlast_core::{Nonce, OwnerId};
use outlast_store::{AcquireLease, LeaseError, LeaseGranted, LeaseOn, LeaseSeen, LeaseToken};
use tokio_postgres::Row;

use crate::failure::Tried;
use crate::sql::context::{Tx, get, int, millis, number, parsed, uint};

/// One conditional write, whose condition is looked at with the row locked. Of several at once, one finds it free.
const ACQUIRE: &str = "\
INSERT INTO leases AS l (name, epoch, owner, nonce, until_time) \
SELECT $1, 1, $2, $3, outlast_now() + $4 \
WHERE $5::text IS NULL OR EXISTS (SELECT 1 FROM sessions WHERE session_id = $5) \
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, nonce = excluded.nonce, until_time = outlast_now() + $4, \
    epoch = l.epoch + CASE WHEN l.owner = excluded.owner AND l.nonce = excluded.nonce THEN 0 ELSE 1 END \
WHERE l.owner IS NULL OR l.until_time <= outlast_now() OR (l.owner = excluded.owner AND l.nonce = excluded.nonce) \
RETURNING epoch, note, noted_at";

/// See [`outlast_store::Ledger::acquire_lease`].
pub(crate) async fn acquire_lease(
    tx: &Tx<'_>,
    request: &AcquireLease,
) -> Tried<Result<LeaseGranted, LeaseError>> {
    let name = request.on.name();
    let session = match &request.on {
        LeaseOn::Session(session) => Some(session.as_str()),
        LeaseOn::Workspaces => None,
    };
    loop {
        let granted = tx
            .maybe(
                ACQUIRE,
                &[&name, &request.owner.as_str(), &request.nonce.as_str(), &millis(request.lasts), &session],
            )
            .await?;
        if let Some(row) = granted {
            let token = LeaseToken {
                on: request.on.clone(),
                owner: request.owner.clone(),
                epoch: number(&row, 0)?,
                nonce: request.nonce.clone(),
            };
            let note = get::<Option<i64>>(&row, 1)?.zip(get::<Option<i64>>(&row, 2)?);
            return Ok(Ok(LeaseGranted { token, note: note.map(|(note, at)| (uint(note), uint(at))) }));
        }
        match (Held::lock(tx, &name).await?, session) {
            // It runs out at this very moment: asked again, it is free.
            (Some(held), _) if held.remaining == 0 => {}
            (Some(held), _) => return Ok(Err(request.on.held(held.seen()?).into())),
            (None, session) => {
                let session = session.unwrap_or_default().to_owned();
                return Ok(Err(LeaseRefusal::SessionNotFound(session).into()));
            }
        }
    }
}

/// A lease's row, locked until the transaction ends.
struct Held {
    epoch: u64,
    owner: Option<String>,
    nonce: Option<Nonce>,
    remaining: u64,
}

impl Held {
    async fn lock(tx: &Tx<'_>, name: &str) -> Tried<Option<Held>> {
        // What is selected from the lock is computed once it is held.
        let row = tx
            .maybe(
                "WITH locked AS (SELECT epoch, owner, nonce, until_time FROM leases WHERE name = $1 FOR UPDATE) \
                 SELECT epoch, owner, nonce, greatest(coalesce(until_time, 0) - outlast_now(), 0) FROM locked",
                &[&name],
            )
            .await?;
        let read = |row: &Row| {
            Ok(Held {
                epoch: number(row, 0)?,
                owner: get(row, 1)?,
                nonce: get::<Option<String>>(row, 2)?.map(Nonce::from_stored),
                remaining: number(row, 3)?,
            })
        };
        row.as_ref().map(read).transpose()
    }

    fn is(&self, lease: &LeaseToken) -> bool {
        self.epoch == lease.epoch && self.nonce.as_ref() == Some(&lease.nonce) && self.remaining > 0
    }

    fn seen(self) -> Tried<LeaseSeen> {
        let owner = parsed("owner", OwnerId::new(self.owner.unwrap_or_default()))?;
        Ok(LeaseSeen { owner, epoch: self.epoch, remaining: self.remaining })
    }
}

/// Whether the lease is held, and stays so until the transaction ends: whoever would take it waits for the row.
pub(super) async fn lease_held(tx: &Tx<'_>, lease: &LeaseToken) -> Tried<bool> {
    Ok(Held::lock(tx, &lease.on.name()).await?.is_some_and(|held| held.is(lease)))
}

/// See [`outlast_store::Ledger::renew_lease`].
pub(crate) async fn renew_lease(tx: &Tx<'_>, lease: &LeaseToken, lasts: Duration) -> Tried<bool> {
    let held = lease_held(tx, lease).await?;
    if held {
        tx.write(
            "UPDATE leases SET until_time = outlast_now() + $2 WHERE name = $1",
            &[&lease.on.name(), &millis(lasts)],
        )
        .await?;
    }
    Ok(held)
}

/// See [`outlast_store::Ledger::release_lease`].
pub(crate) async fn release_lease(tx: &Tx<'_>, lease: &LeaseToken, note: Option<u64>) -> Tried<()> {
    if lease_held(tx, lease).await? {
        tx.write(
            "UPDATE leases SET owner = NULL, nonce = NULL, until_time = NULL, note = coalesce($2, note), \
             noted_at = CASE WHEN $2 IS NULL THEN noted_at ELSE outlast_now() END WHERE name = $1",
            &[&lease.on.name(), &note.map(int)],
        )
        .await?;
    }
    Ok(())
}

/// Gives back every lease of the owner.
pub(in crate::sql) async fn release_all_leases(tx: &Tx<'_>, owner: &OwnerId) -> Tried<()> {
    tx.write(
        "UPDATE leases SET owner = NULL, nonce = NULL, until_time = NULL WHERE owner = $1",
        &[&owner.as_str()],
    )
    .await?;
    Ok(())
}
