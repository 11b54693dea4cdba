//! Stopping a run.

use std::time::Duration;

use outlast_core::decide::{self, CancelDecision};
use outlast_core::run::{Cancel, CancelReason, RunRecord};
use outlast_core::{RunId, Tenant};
use outlast_store::CancelOutcome;

use super::context::{Tx, get, millis, uint};
use super::head::Head;
use super::record;
use crate::failure::Tried;

/// See [`outlast_store::Runs::request_cancel`].
pub(crate) async fn request_cancel(
    tx: &Tx<'_>,
    tenant: &Tenant,
    run_id: &RunId,
    reason: CancelReason,
    detached_for: Option<Duration>,
) -> Tried<CancelOutcome> {
    // The lock comes first, and keeps viewers from coming meanwhile: they lock the same row.
    let Some(head) = Head::lock(tx, run_id).await? else {
        return Ok(CancelOutcome::NotFound);
    };
    let Some(run) = record::run_in(tx, tenant, run_id).await? else {
        return Ok(CancelOutcome::NotFound);
    };
    let least = detached_for.map(|time| uint(millis(time)));
    let so_far = match least {
        None => None,
        Some(_) => head.detached_for(tx).await?,
    };
    match decide::cancel(run.status, run.cancel_requested.is_some(), least, so_far) {
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
