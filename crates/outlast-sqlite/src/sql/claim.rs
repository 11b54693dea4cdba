//! Claims and their leases.

use std::time::Duration;

use outlast_core::decide::{self, ClaimFacts, ClaimRefusal, Grant, Lease};
use outlast_core::run::{Cancel, ClaimToken};
use outlast_core::{OwnerId, RunId};
use outlast_store::{Claim, ClaimError, Claimed, Renewed};

use super::context::{Tx, int, millis, parsed, uint};
use super::head::{Head, cancel_of};
use super::ledger::release_leases;
use super::record;
use crate::failure::Tried;

/// See [`outlast_store::Runs::claim`].
pub(crate) fn claim(tx: &Tx<'_>, request: &Claim) -> Tried<Result<Claimed, ClaimError>> {
    let Claim { run_id, owner, nonce, lease, .. } = request;
    let Some(head) = Head::find(tx, run_id)? else {
        return Ok(Err(ClaimRefusal::RunNotFound(run_id.clone()).into()));
    };
    let current = match head.lease.as_ref().zip(head.facts.nonce.as_ref()) {
        None => None,
        Some((stored, nonce)) => Some(Lease {
            remaining: tx.lease_remaining(&stored.owner, &stored.boot_id, stored.until),
            owner: parsed("owner", OwnerId::new(stored.owner.as_str()))?,
            nonce: nonce.clone(),
        }),
    };
    let facts = ClaimFacts {
        status: head.facts.status,
        cancel: head.facts.cancel.map(|cancel| cancel.reason),
        lease: current,
        detached_for: head.detached_for(tx)?,
    };
    let epoch = match decide::claim(&facts, &request.ask()) {
        Ok(Grant::New) => head.facts.epoch + 1,
        Ok(Grant::Again) => head.facts.epoch,
        Err(refusal) => return Ok(Err(refusal.into())),
    };
    tx.db
        .prepare_cached(
            "UPDATE runs SET epoch = ?2, lease_owner = ?3, lease_nonce = ?4, lease_boot = ?5, lease_until = ?6, \
             claimed_at = ?7 WHERE run = ?1",
        )?
        .execute((
            head.run,
            int(epoch),
            owner.as_str(),
            nonce.as_str(),
            &tx.boot_id,
            int(tx.boot.saturating_add(millis(*lease))),
            int(tx.wall),
        ))?;
    tx.touch(run_id);
    Ok(Ok(Claimed { token: request.token(epoch), run: record::existing(tx, head.run)? }))
}

/// See [`outlast_store::Runs::renew`].
pub(crate) fn renew(
    tx: &Tx<'_>,
    owner: &OwnerId,
    claims: &[(RunId, u64)],
    lease: Duration,
) -> Tried<Vec<Renewed>> {
    // The end of a run takes its lease away, so whatever still has one lives.
    let mut statement = tx.db.prepare_cached(
        "UPDATE runs SET lease_boot = ?2, lease_until = ?3 WHERE run_id = ?4 AND epoch = ?5 AND lease_owner = ?1 \
         RETURNING cancel_reason, cancel_at",
    )?;
    let until = int(tx.boot.saturating_add(millis(lease)));
    let mut renewed = Vec::new();
    for (run_id, epoch) in claims {
        let mut rows = statement.query((owner.as_str(), &tx.boot_id, until, run_id.as_str(), int(*epoch)))?;
        let Some(row) = rows.next()? else {
            continue;
        };
        let cancel = match row.get::<_, Option<String>>(0)? {
            None => None,
            Some(reason) => Some(Cancel { reason: cancel_of(&reason)?, at: uint(row.get(1)?) }),
        };
        renewed.push(Renewed { run_id: run_id.clone(), epoch: *epoch, lease, cancel });
    }
    Ok(renewed)
}

/// See [`outlast_store::Runs::release`].
pub(crate) fn release(tx: &Tx<'_>, token: &ClaimToken) -> Tried<()> {
    let released = tx
        .db
        .prepare_cached(
            "UPDATE runs SET lease_owner = NULL, lease_nonce = NULL, lease_boot = NULL, lease_until = NULL \
             WHERE run_id = ?1 AND epoch = ?2 AND lease_nonce = ?3 AND lease_owner IS NOT NULL",
        )?
        .execute((token.run_id.as_str(), int(token.epoch), token.nonce.as_str()))?;
    if released > 0 {
        tx.touch(&token.run_id);
    }
    Ok(())
}

/// Gives back every claim and every lease of the owner.
pub(crate) fn release_all(tx: &Tx<'_>, owner: &OwnerId) -> Tried<()> {
    tx.db
        .prepare_cached(
            "UPDATE runs SET lease_owner = NULL, lease_nonce = NULL, lease_boot = NULL, lease_until = NULL \
             WHERE lease_owner = ?1",
        )?
        .execute([owner.as_str()])?;
    release_leases(tx, owner)
}
