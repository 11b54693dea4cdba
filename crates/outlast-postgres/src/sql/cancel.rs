//! Stopping a run.

use outlast_core::decide::{self, CancelDecision};
use outlast_core::run::{Cancel, CancelReason, RunRecord};
use outlast_core::{RunId, Tenant};
use outlast_store::CancelOutcome;

use super::context::{Tx, get, uint};
use super::head::Head;
use super::record;
use crate::failure::Tried;

/// See [`outlast_store::Runs::request_cancel`].
pub(crate) async fn request_cancel(
    tx: &Tx<'_>,
    tenant: &Tenant,
    run_id: &RunId,
    reason: CancelReason,
) -> Tried<CancelOutcome> {
    // The lock comes first, and keeps viewers from coming meanwhile: they lock the same row.
    if Head::lock(tx, run_id).await?.is_none() {
        return Ok(CancelOutcome::NotFound);
    }
    let Some(run) = record::run_in(tx, tenant, run_id).await? else {
        return Ok(CancelOutcome::NotFound);
    };
    let watched = run.detached_since.is_none();
    match decide::cancel(run.status, run.cancel_requested.is_some(), reason, watched) {
        CancelDecision::Terminal => return Ok(CancelOutcome::Terminal(Box::new(run))),
        CancelDecision::AlreadyRequested => return Ok(CancelOutcome::AlreadyRequested(Box::new(run))),
        CancelDecision::Watched => return Ok(CancelOutcome::Watched(Box::new(run))),
        CancelDecision::Record => {}
    }
    let row = tx
        .one(
            "UPDATE runs SET cancel_reason = $2, cancel_at = outlast_now() WHERE run_id = $1 RETURNING cancel_at",
            &[&run_id.as_str(), &reason.as_str()],
        )
        .await?;
    tx.touch(run_id);
    let cancel_requested = Some(Cancel { reason, at: uint(get(&row, 0)?) });
    Ok(CancelOutcome::Recorded(Box::new(RunRecord { cancel_requested, ..run })))
}
