//! Ending a run.

use outlast_core::decide::{Fenced, WriteDecision};
use outlast_core::run::RunRecord;
use outlast_store::{Finish, FinishError, Finished, StoreError, run_ended, run_started};

use super::append::{session, write_content};
use super::context::{Tx, int, to_json};
use super::head::Head;
use super::ledger::{OfRun, Session, add_of_run, input, pointers_of, settle};
use super::reclaim::reclaim_after_end;
use super::record;
use crate::failure::{Tried, defect};

/// See [`outlast_store::Log::finish`].
pub(crate) async fn finish(tx: &Tx<'_>, request: &Finish) -> Tried<Result<Finished, FinishError>> {
    if let Err(error) = check(request) {
        return Ok(Err(error.into()));
    }
    let append = &request.append;
    let run_id = &append.token.run_id;
    let Some(head) = Head::lock(tx, run_id).await? else {
        return Ok(Err(Fenced::RunNotFound(run_id.clone()).into()));
    };
    match head.facts.finish(&append.token, &append.batch, append.expected_tail, request.cancel) {
        Ok(WriteDecision::Write) => {}
        // The same finish again: its first attempt was committed and the answer was lost.
        Ok(WriteDecision::Written) => {
            return Ok(Ok(Finished { run: record::existing(tx, head.run).await? }));
        }
        Err(refusal) => return Ok(Err(refusal.into())),
    }
    let mut ledger = Session::lock_or_make(tx, &head.tenant, &head.thread_id, head.run, true).await?;
    let keys = pointers_of(&append.events, &append.messages);
    if let Err(refusal) = ledger.may_point_to(tx, append.barrier, &keys).await? {
        return Ok(Err(FinishError::Bodies(refusal)));
    }
    let tail = write_content(tx, &head, append).await?;
    let verdict = &request.verdict;
    // The nonce stays, so that a late write of the same driver is told that the run has ended.
    tx.write(
        "UPDATE runs SET tail = $2, last_batch = $3, cursor = coalesce($4, cursor), \
         agent_session = coalesce($5, agent_session), status = $6, error = $7, end_reason = $8, usage = $9, \
         exit_code = $10, finished_at = outlast_now(), closed = true, sealed = true, lease_owner = NULL, \
         lease_until = NULL, ledgered = CASE WHEN $11 THEN 2 ELSE ledgered END WHERE run = $1",
        &[
            &head.run,
            &int(tail.0),
            &append.batch.as_str(),
            &append.cursor.as_ref().map(to_json).transpose()?,
            &session(append),
            &verdict.status.as_str(),
            &verdict.error.as_ref().map(to_json).transpose()?,
            &verdict.reason.as_str(),
            &(!request.usage.is_empty()).then(|| to_json(&request.usage)).transpose()?,
            &request.exit_code,
            &ledger.is_active(),
        ],
    )
    .await?;
    let run = record::existing(tx, head.run).await?;
    // A run can live on a deleted thread only where a host of the version before has accepted it. It ends all the same.
    if ledger.is_active() {
        settle(tx, &mut ledger, head.run).await?;
        add_end(tx, &mut ledger, &head, &run).await?;
    }
    if let Some(instance) = &head.instance_id {
        reclaim_after_end(tx, instance, verdict.reason).await?;
    }
    tx.touch(run_id);
    Ok(Ok(Finished { run }))
}

/// Gives the ledger the run's messages and its end; of one that a host of the version before has accepted its start, too.
async fn add_end(tx: &Tx<'_>, ledger: &mut Session, head: &Head, run: &RunRecord) -> Tried<()> {
    let started = match head.ledgered {
        0 => Some(run_started(&run.run_id, &run.agent, run.model.as_deref(), &input(tx, head.run).await?)),
        _ => None,
    };
    let (run_id, ended, active_at) = (&run.run_id, Some(run_ended(run)), ledger.now());
    add_of_run(tx, ledger, OfRun { run: head.run, run_id, started, ended, active_at }).await?;
    ledger.save(tx).await
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
