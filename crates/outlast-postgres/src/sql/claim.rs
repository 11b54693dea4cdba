//! Claims.

use std::time::Duration;

use outlast_core::decide::{self, ClaimFacts, ClaimRefusal, Lease};
use outlast_core::run::{ClaimToken, Purpose};
use outlast_core::{OwnerId, RunId};
use outlast_store::{ClaimError, Claimed};

use super::context::{Tx, get, int, millis, parsed};
use super::head::Head;
use super::record;
use crate::failure::Tried;

/// See [`outlast_store::Runs::claim`].
pub(crate) async fn claim(
    tx: &Tx<'_>,
    run_id: &RunId,
    owner: &OwnerId,
    purpose: Purpose,
    lease: Duration,
) -> Tried<Result<Claimed, ClaimError>> {
    let Some(head) = Head::lock(tx, run_id).await? else {
        return Ok(Err(ClaimRefusal::RunNotFound(run_id.clone()).into()));
    };
    let current = match &head.lease_owner {
        None => None,
        Some(holder) => Some(Lease {
            owner: parsed("owner", OwnerId::new(holder.as_str()))?,
            remaining: head.lease_remaining,
        }),
    };
    let facts =
        ClaimFacts { status: head.status, cancel: head.cancel.map(|cancel| cancel.reason), lease: current };
    if let Err(refusal) = decide::claim(&facts, purpose) {
        return Ok(Err(refusal.into()));
    }
    let nonce = tx.entropy.nonce();
    let epoch = head.epoch + 1;
    tx.write(
        "UPDATE runs SET epoch = $2, lease_owner = $3, lease_nonce = $4, lease_until = outlast_now() + $5, \
         claimed_at = outlast_now() WHERE run = $1",
        &[&head.run, &int(epoch), &owner.as_str(), &nonce.as_str(), &millis(lease)],
    )
    .await?;
    tx.touch(run_id);
    Ok(Ok(Claimed {
        token: ClaimToken { run_id: run_id.clone(), owner: owner.clone(), epoch, nonce },
        run: record::existing(tx, head.run).await?,
    }))
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

/// Gives back every claim of the owner.
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
    Ok(())
}
