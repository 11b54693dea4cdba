//! Claims.

use outlast_core::decide::{self, ClaimFacts, ClaimRefusal, Grant, Lease};
use outlast_core::run::ClaimToken;
use outlast_core::{OwnerId, RunId};
use outlast_store::{Claim, ClaimError, Claimed};

use super::context::{Tx, get, int, millis, parsed};
use super::head::Head;
use super::ledger::release_all_leases;
use super::record;
use crate::failure::Tried;

/// See [`outlast_store::Runs::claim`].
pub(crate) async fn claim(tx: &Tx<'_>, request: &Claim) -> Tried<Result<Claimed, ClaimError>> {
    let Claim { run_id, owner, nonce, lease, detached_for, .. } = request;
    let Some(head) = Head::lock(tx, run_id).await? else {
        return Ok(Err(ClaimRefusal::RunNotFound(run_id.clone()).into()));
    };
    let current = match head.lease_owner.as_ref().zip(head.facts.nonce.as_ref()) {
        None => None,
        Some((holder, nonce)) => Some(Lease {
            owner: parsed("owner", OwnerId::new(holder.as_str()))?,
            nonce: nonce.clone(),
            remaining: head.lease_remaining,
        }),
    };
    let facts = ClaimFacts {
        status: head.facts.status,
        cancel: head.facts.cancel.map(|cancel| cancel.reason),
        lease: current,
        detached_for: match detached_for {
            None => None,
            Some(_) => head.detached_for(tx).await?,
        },
    };
    let epoch = match decide::claim(&facts, &request.ask()) {
        Ok(Grant::New) => head.facts.epoch + 1,
        Ok(Grant::Again) => head.facts.epoch,
        Err(refusal) => return Ok(Err(refusal.into())),
    };
    tx.write(
        "UPDATE runs SET epoch = $2, lease_owner = $3, lease_nonce = $4, lease_until = outlast_now() + $5, \
         claimed_at = outlast_now() WHERE run = $1",
        &[&head.run, &int(epoch), &owner.as_str(), &nonce.as_str(), &millis(*lease)],
    )
    .await?;
    tx.touch(run_id);
    Ok(Ok(Claimed { token: request.token(epoch), run: record::existing(tx, head.run).await? }))
}

/// See [`outlast_store::Runs::release`].
pub(crate) async fn release(tx: &Tx<'_>, token: &ClaimToken) -> Tried<()> {
    let released = tx
        .write(
            "UPDATE runs SET lease_owner = NULL, lease_nonce = NULL, lease_until = NULL \
             WHERE run_id = $1 AND epoch = $2 AND lease_nonce = $3 AND lease_owner IS NOT NULL",
            &[&token.run_id.as_str(), &int(token.epoch), &token.nonce.as_str()],
        )
        .await?;
    if released > 0 {
        tx.touch(&token.run_id);
    }
    Ok(())
}

/// Gives back every claim and every lease of the owner.
pub(crate) async fn release_all(tx: &Tx<'_>, owner: &OwnerId) -> Tried<()> {
    let rows = tx
        .all(
            "UPDATE runs SET lease_owner = NULL, lease_nonce = NULL, lease_until = NULL WHERE lease_owner = $1 \
             RETURNING run_id",
            &[&owner.as_str()],
        )
        .await?;
    for row in &rows {
        tx.touch(&parsed("run id", RunId::new(get::<&str>(row, 0)?))?);
    }
    release_all_leases(tx, owner).await
}
