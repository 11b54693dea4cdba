//! Leases on the upkeep of sessions.

use std::time::Duration;

use outlast_core::OwnerId;
use outlast_core::decide::LeaseRefusal;
use outlast_store::{AcquireLease, LeaseError, LeaseGranted, LeaseOn, LeaseSeen, LeaseToken};
use rusqlite::OptionalExtension;

use super::session::Session;
use crate::failure::Tried;
use crate::sql::context::{Tx, View, int, millis, parsed, uint};

/// A lease, held or given back.
struct Lease {
    epoch: u64,
    held: Option<Held>,
    note: Option<(u64, u64)>,
}

/// Who holds it, until when on the clock of a boot.
struct Held {
    owner: String,
    nonce: String,
    boot_id: String,
    until: u64,
}

impl Lease {
    fn find(view: &View<'_>, on: &LeaseOn) -> Tried<Option<Lease>> {
        let mut statement = view.db.prepare_cached(
            "SELECT epoch, owner, nonce, boot, until, note, noted_at FROM leases WHERE name = ?1",
        )?;
        let found = statement.query_row([on.name()], |row| {
            let owner: Option<String> = row.get(1)?;
            let note: Option<i64> = row.get(5)?;
            let noted_at: Option<i64> = row.get(6)?;
            Ok(Lease {
                epoch: uint(row.get(0)?),
                held: match owner {
                    None => None,
                    Some(owner) => Some(Held {
                        owner,
                        nonce: row.get(2)?,
                        boot_id: row.get(3)?,
                        until: uint(row.get(4)?),
                    }),
                },
                note: note.map(uint).zip(noted_at.map(uint)),
            })
        });
        Ok(found.optional()?)
    }
}

/// Who holds a lease as it is stored, and for how much longer; none where it has run out, or its holder is dead.
pub(super) fn seen(
    view: &View<'_>,
    epoch: u64,
    owner: String,
    boot_id: &str,
    until: u64,
) -> Tried<Option<LeaseSeen>> {
    let remaining = view.lease_remaining(&owner, boot_id, until);
    let owner = parsed("owner", OwnerId::new(owner))?;
    Ok((remaining > 0).then_some(LeaseSeen { owner, epoch, remaining }))
}

/// Whether the lease is held with this token.
pub(super) fn holds(view: &View<'_>, token: &LeaseToken) -> Tried<bool> {
    let found = Lease::find(view, &token.on)?;
    Ok(found.is_some_and(|lease| {
        lease.epoch == token.epoch
            && lease.held.is_some_and(|held| {
                held.nonce == token.nonce.as_str()
                    && view.lease_remaining(&held.owner, &held.boot_id, held.until) > 0
            })
    }))
}

/// See [`outlast_store::Ledger::acquire_lease`].
pub(crate) fn acquire_lease(tx: &Tx<'_>, request: &AcquireLease) -> Tried<Result<LeaseGranted, LeaseError>> {
    let AcquireLease { on, owner, nonce, lasts } = request;
    if let LeaseOn::Session(id) = on
        && Session::by_id(tx, id)?.is_none()
    {
        return Ok(Err(LeaseRefusal::SessionNotFound(id.to_string()).into()));
    }
    let Lease { epoch, held, note } =
        Lease::find(tx, on)?.unwrap_or(Lease { epoch: 0, held: None, note: None });
    let again = held
        .as_ref()
        .is_some_and(|held| (held.owner.as_str(), held.nonce.as_str()) == (owner.as_str(), nonce.as_str()));
    if let Some(held) = held.filter(|_| !again)
        && let Some(seen) = seen(tx, epoch, held.owner, &held.boot_id, held.until)?
    {
        return Ok(Err(on.held(seen).into()));
    }
    let epoch = epoch + u64::from(!again);
    tx.db
        .prepare_cached(
            "INSERT INTO leases (name, epoch, owner, nonce, boot, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
             ON CONFLICT DO UPDATE SET epoch = excluded.epoch, owner = excluded.owner, nonce = excluded.nonce, \
             boot = excluded.boot, until = excluded.until",
        )?
        .execute((
            on.name(),
            int(epoch),
            owner.as_str(),
            nonce.as_str(),
            &tx.boot_id,
            int(tx.boot.saturating_add(millis(*lasts))),
        ))?;
    let token = LeaseToken { on: on.clone(), owner: owner.clone(), epoch, nonce: nonce.clone() };
    Ok(Ok(LeaseGranted { token, note }))
}

/// See [`outlast_store::Ledger::renew_lease`].
pub(crate) fn renew_lease(tx: &Tx<'_>, token: &LeaseToken, lasts: Duration) -> Tried<bool> {
    let holds = holds(tx, token)?;
    if holds {
        tx.db
            .prepare_cached("UPDATE leases SET until = ?2 WHERE name = ?1")?
            .execute((token.on.name(), int(tx.boot.saturating_add(millis(lasts)))))?;
    }
    Ok(holds)
}

/// See [`outlast_store::Ledger::release_lease`].
pub(crate) fn release_lease(tx: &Tx<'_>, token: &LeaseToken, note: Option<u64>) -> Tried<()> {
    if holds(tx, token)? {
        tx.db
            .prepare_cached(
                "UPDATE leases SET owner = NULL, nonce = NULL, boot = NULL, until = NULL, \
                 note = coalesce(?2, note), noted_at = CASE WHEN ?2 IS NULL THEN noted_at ELSE ?3 END WHERE name = ?1",
            )?
            .execute((token.on.name(), note.map(int), int(tx.wall)))?;
    }
    Ok(())
}

/// Gives back every lease of the owner.
pub(crate) fn release_leases(tx: &Tx<'_>, owner: &OwnerId) -> Tried<()> {
    tx.db
        .prepare_cached(
            "UPDATE leases SET owner = NULL, nonce = NULL, boot = NULL, until = NULL WHERE owner = ?1",
        )?
        .execute([owner.as_str()])?;
    Ok(())
}
