//! The delivery log.

use std::time::Duration;

use async_trait::async_trait;
use outlast_core::decide::{Fenced, RecordsRefusal, WriteDecision};
use outlast_core::event::EventKind;
use outlast_core::run::{ClaimToken, Phase};
use outlast_core::{RunId, Seq, Tenant};

use super::MemoryStore;
use super::handle::defect;
use super::state::{Now, Run, State};
use crate::{
    Append, AppendError, Appended, Finish, FinishError, Finished, Log, LogEnd, NewEvent, Page, ReadError,
    Signal, StoreError, Swept,
};

#[async_trait]
impl Log for MemoryStore {
    async fn launched(
        &self,
        token: &ClaimToken,
        expected_tail: Seq,
        events: Vec<NewEvent>,
    ) -> Result<Appended, AppendError> {
        refuse_terminal(events.iter().map(|event| event.chunk.kind))?;
        let now = self.now();
        let mut state = self.lock();
        let run = state.get_mut(&token.run_id).ok_or_else(|| Fenced::RunNotFound(token.run_id.clone()))?;
        let launched = run.record.phase == Phase::Launched;
        if run.facts().launched(token, expected_tail, launched)? == WriteDecision::Written {
            return Ok(Appended { tail: run.tail() });
        }
        run.push(events, now.wall);
        run.record.phase = Phase::Launched;
        run.last_batch = None;
        let tail = run.tail();
        drop(state);
        self.signals.run_changed(&token.run_id);
        Ok(Appended { tail })
    }

    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        refuse_terminal(append.events.iter().map(|event| event.chunk.kind))?;
        let now = self.now();
        let run_id = append.token.run_id.clone();
        let mut state = self.lock();
        let run = state.get_mut(&run_id).ok_or_else(|| Fenced::RunNotFound(run_id.clone()))?;
        let facts = run.facts();
        if facts.append(&append.token, &append.batch, append.expected_tail)? == WriteDecision::Written {
            return Ok(Appended { tail: run.tail() });
        }
        check_bodies(&state, &append).map_err(AppendError::Bodies)?;
        let run = state.get_mut(&run_id).ok_or_else(|| Fenced::RunNotFound(run_id.clone()))?;
        apply(run, append, now.wall);
        let tail = run.tail();
        drop(state);
        self.signals.run_changed(&run_id);
        Ok(Appended { tail })
    }

    async fn finish(&self, finish: Finish) -> Result<Finished, FinishError> {
        check(&finish)?;
        let now = self.now();
        let run_id = finish.append.token.run_id.clone();
        let mut state = self.lock();
        let run = state.get_mut(&run_id).ok_or_else(|| Fenced::RunNotFound(run_id.clone()))?;
        let append = &finish.append;
        let decided =
            run.facts().finish(&append.token, &append.batch, append.expected_tail, finish.cancel)?;
        if decided == WriteDecision::Written {
            return Ok(Finished { run: run.seen(&now) });
        }
        check_bodies(&state, append).map_err(FinishError::Bodies)?;
        let run = state.get_mut(&run_id).ok_or_else(|| Fenced::RunNotFound(run_id.clone()))?;
        apply(run, finish.append, now.wall);
        run.record.status = finish.verdict.status;
        run.record.error = finish.verdict.error;
        run.record.end_reason = Some(finish.verdict.reason);
        run.record.usage = finish.usage;
        run.record.exit_code = finish.exit_code;
        run.record.finished_at = Some(now.wall);
        run.record.sealed = true;
        run.closed = true;
        // The nonce stays, so that a late write of the same driver is told that the run has ended.
        run.lease = None;
        let reason = run.record.end_reason;
        let instance = run.record.instance_id.clone();
        let seen = run.seen(&now);
        state.settle(self.deployment(), &seen.tenant, &seen.thread_id, &now);
        state.reclaim_after_end(instance.as_ref(), reason, &now);
        drop(state);
        self.signals.run_changed(&run_id);
        Ok(Finished { run: seen })
    }

    async fn read(
        &self,
        tenant: &Tenant,
        run_id: &RunId,
        after: Seq,
        max_events: usize,
        max_bytes: usize,
    ) -> Result<Page, ReadError> {
        let state = self.lock();
        let run = state.find(tenant, run_id).ok_or_else(|| ReadError::RunNotFound(run_id.clone()))?;
        let tail = run.tail();
        if after > tail {
            return Err(ReadError::OffsetAhead { offset: after, tail });
        }
        if run.expired {
            return Ok(Page { events: Vec::new(), end: LogEnd::Expired, tail });
        }
        let from = usize::try_from(after.0).unwrap_or(usize::MAX);
        let mut events = Vec::new();
        let mut bytes = 0;
        for event in run.events[from..].iter().take(max_events) {
            bytes += event.json.len();
            events.push(event.clone());
            if bytes >= max_bytes {
                break;
            }
        }
        let end = if run.closed { LogEnd::Closed } else { LogEnd::Open };
        Ok(Page { events, end, tail })
    }

    async fn expire_events(&self, ended_for: Duration, max_rows: usize) -> Result<Swept, StoreError> {
        let now = self.now();
        let mut state = self.lock();
        let mut swept = Swept::default();
        for run in state.runs.iter_mut().filter(|run| ended(run, &now, ended_for) && !run.events.is_empty()) {
            let room = max_rows - usize::try_from(swept.rows).unwrap_or(max_rows);
            if room == 0 {
                swept.more = true;
                break;
            }
            run.expired = true;
            let going = room.min(run.events.len());
            run.events.drain(..going);
            swept.rows += going as u64;
            swept.runs += u64::from(run.events.is_empty());
            swept.more |= !run.events.is_empty();
        }
        Ok(swept)
    }

    async fn count_expired(&self, ended_for: Duration) -> Result<Swept, StoreError> {
        let now = self.now();
        let state = self.lock();
        let mut swept = Swept::default();
        for run in state.runs.iter().filter(|run| ended(run, &now, ended_for) && !run.events.is_empty()) {
            swept.runs += 1;
            swept.rows += run.events.len() as u64;
        }
        Ok(swept)
    }

    fn subscribe(&self, run_id: &RunId) -> Signal {
        self.signals.subscribe(run_id)
    }
}

/// Whether the run ended at least so long ago.
fn ended(run: &Run, now: &Now, ended_for: Duration) -> bool {
    run.record.finished_at.is_some_and(|at| Now::plus(at, ended_for) <= now.wall)
}

fn apply(run: &mut Run, append: Append, at: u64) {
    run.push(append.events, at);
    for message in append.messages {
        run.messages.insert(message.ordinal, message);
    }
    run.last_batch = Some(append.batch);
    if append.cursor.is_some() {
        run.record.cursor = append.cursor;
    }
    if append.agent_session.is_some() {
        run.record.agent_session = append.agent_session;
    }
}

/// Whether what the append points to may be pointed to.
fn check_bodies(state: &State, append: &Append) -> Result<(), RecordsRefusal> {
    let of_events = append.events.iter().filter_map(|event| event.pointer.as_ref());
    let of_messages = append
        .messages
        .iter()
        .filter_map(|message| message.offloaded.as_ref().map(|offloaded| &offloaded.pointer));
    let Some(run) = state.get(&append.token.run_id) else { return Ok(()) };
    let record = &run.record;
    state.check_bodies(&record.tenant, &record.thread_id, append.barrier, of_events.chain(of_messages))
}

/// Only `finish` ends a log.
pub(super) fn refuse_terminal(mut kinds: impl Iterator<Item = EventKind>) -> Result<(), StoreError> {
    match kinds.find(|kind| kind.is_terminal()) {
        None => Ok(()),
        Some(kind) => Err(defect(format!("{} is only written by the end of a run", kind.as_str()))),
    }
}

/// A log ends with exactly one terminal event, and a run with a terminal status.
fn check(finish: &Finish) -> Result<(), StoreError> {
    let events = &finish.append.events;
    let terminal = events.iter().filter(|event| event.chunk.kind.is_terminal()).count();
    if terminal != 1 || !events.last().is_some_and(|event| event.chunk.kind.is_terminal()) {
        return Err(defect("the last events of a run end with exactly one RUN_FINISHED or RUN_ERROR"));
    }
    if !finish.verdict.status.is_terminal() {
        return Err(defect(format!("a run does not end as {}", finish.verdict.status)));
    }
    Ok(())
}
