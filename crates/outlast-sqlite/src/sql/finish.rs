//! Ending a run.

use outlast_core::decide::{Fenced, WriteDecision};
use outlast_store::{Finish, FinishError, Finished, StoreError};

use super::append::write_append;
use super::context::{Tx, int, to_json};
use super::head::Head;
use super::ledger::{Session, check_bodies, settle};
use super::reclaim::reclaim_after_end;
use super::record;
use crate::failure::{Tried, defect};

/// See [`outlast_store::Log::finish`].
pub(crate) fn finish(tx: &Tx<'_>, request: &Finish) -> Tried<Result<Finished, FinishError>> {
    if let Err(error) = check(request) {
        return Ok(Err(error.into()));
    }
    let append = &request.append;
    let run_id = &append.token.run_id;
    let Some(head) = Head::find(tx, run_id)? else {
        return Ok(Err(Fenced::RunNotFound(run_id.clone()).into()));
    };
    match head.facts.finish(&append.token, &append.batch, append.expected_tail, request.cancel) {
        Ok(WriteDecision::Write) => {}
        // The same finish again: its first attempt was committed and the answer was lost.
        Ok(WriteDecision::Written) => {
            return Ok(Ok(Finished { run: record::existing(tx, head.run)? }));
        }
        Err(refusal) => return Ok(Err(refusal.into())),
    }
    if let Err(refusal) = check_bodies(tx, head.run, append)? {
        return Ok(Err(FinishError::Bodies(refusal)));
    }
    write_append(tx, &head, append)?;
    let verdict = &request.verdict;
    // The nonce stays, so that a late write of the same driver is told that the run has ended.
    let usage = (!request.usage.is_empty()).then(|| to_json(&request.usage)).transpose()?;
    tx.db
        .prepare_cached(
            "UPDATE runs SET status = ?2, error = ?3, end_reason = ?4, usage = ?5, exit_code = ?6, finished_at = ?7, \
             closed = 1, sealed = 1, lease_owner = NULL, lease_boot = NULL, lease_until = NULL \
             WHERE run = ?1",
        )?
        .execute((
            head.run,
            verdict.status.as_str(),
            verdict.error.as_ref().map(to_json).transpose()?,
            verdict.reason.as_str(),
            usage,
            request.exit_code,
            int(tx.wall),
        ))?;
    if let Some(instance) = &head.instance_id {
        reclaim_after_end(tx, instance, verdict.reason)?;
    }
    tx.touch(run_id);
    let run = record::existing(tx, head.run)?;
    // With the end itself: there is no moment at which the transcript is sealed and the ledger lacks it, or at which its
    // messages are in both places or in none.
    let session = Session::of_thread(tx, &run.tenant, &run.thread_id)?;
    settle(tx, session, &run.tenant, &run.thread_id)?;
    Ok(Ok(Finished { run }))
}

/// A log ends with exactly one terminal event, and a run with a terminal status.
fn check(request: &Finish) -> Result<(), StoreError> {
    let terminal = request.append.events.iter().filter(|event| event.chunk.kind.is_terminal()).count();
    let last = request.append.events.last().is_some_and(|event| event.chunk.kind.is_terminal());
    if terminal != 1 || !last {
        return Err(defect("the last events of a run end with exactly one RUN_FINISHED or RUN_ERROR"));
    }
    if !request.verdict.status.is_terminal() {
        return Err(defect(format!("a run does not end as {}", request.verdict.status)));
    }
    Ok(())
}
