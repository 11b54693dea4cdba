//! Stopping a run.

use std::time::Duration;

use outlast_core::decide::{self, CancelDecision};
use outlast_core::run::CancelReason;
use outlast_core::{RunId, Tenant};
use outlast_store::CancelOutcome;

use super::context::{Tx, int, millis};
use super::record;
use crate::failure::Tried;

/// See [`outlast_store::Runs::request_cancel`].
pub(crate) fn request_cancel(
    tx: &Tx<'_>,
    tenant: &Tenant,
    run_id: &RunId,
    reason: CancelReason,
    detached_for: Option<Duration>,
) -> Tried<CancelOutcome> {
    let Some(run) = record::run(tx, tenant, run_id)? else {
        return Ok(CancelOutcome::NotFound);
    };
    let so_far = run.detached_since.map(|since| tx.wall - since);
    match decide::cancel(run.status, run.cancel_requested.is_some(), detached_for.map(millis), so_far) {
        CancelDecision::Terminal => return Ok(CancelOutcome::Terminal(Box::new(run))),
        CancelDecision::AlreadyRequested => return Ok(CancelOutcome::AlreadyRequested(Box::new(run))),
        CancelDecision::Watched => return Ok(CancelOutcome::Watched(Box::new(run))),
        CancelDecision::Record => {}
    }
    tx.db
        .prepare_cached("UPDATE runs SET cancel_reason = ?2, cancel_at = ?3 WHERE run_id = ?1")?
        .execute((run_id.as_str(), reason.as_str(), int(tx.wall)))?;
    tx.touch(run_id);
    let cancel_requested = Some(outlast_core::run::Cancel { reason, at: tx.wall });
    Ok(CancelOutcome::Recorded(Box::new(outlast_core::run::RunRecord { cancel_requested, ..run })))
}
