//! Run records, claims, cancels and presence.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::decide::{
    self, AcceptDecision, AcceptFacts, CancelDecision, ClaimFacts, ClaimRefusal, ExistingRun, Grant,
    SessionState,
};
use outlast_core::duration::millis;
use outlast_core::event::Origin;
use outlast_core::run::{Cancel, CancelReason, ClaimToken, Phase, RunRecord, Status};
use outlast_core::{OwnerId, RunId, Seq, Tenant, ThreadId};

use super::MemoryStore;
use super::log::refuse_terminal;
use super::state::{Now, Run, State, StoredLease};
use crate::{
    Accept, AcceptError, Accepted, CancelOutcome, Claim, ClaimError, Claimed, HostSeen, ListRuns, NewEvent,
    PresenceUntil, Renewed, Runs, StoreError, WriteError,
};

#[async_trait]
impl Runs for MemoryStore {
    async fn accept(&self, request: Accept) -> Result<Accepted, AcceptError> {
        refuse_terminal(request.events.iter().map(|chunk| chunk.kind))?;
        let now = self.now();
        let mut state = self.lock();
        let facts = accept_facts(&state, &request);
        let decision = decide::accept(&facts, &request.ask())?;
        let token = request.token();
        if let Some(run) = state.get_mut(&request.run_id) {
            if decision == AcceptDecision::Existing {
                return Ok(Accepted::Existing(Box::new(run.seen(&now))));
            }
            run.lease = Some(new_lease(&request.owner, request.lease, &now));
            return Ok(Accepted::New(Box::new(Claimed { run: run.seen(&now), token })));
        }
        let pointers = request
            .messages
            .iter()
            .filter_map(|message| message.offloaded.as_ref().map(|offloaded| &offloaded.pointer));
        state
            .check_bodies(&request.tenant, &request.thread_id, request.barrier, pointers)
            .map_err(AcceptError::Bodies)?;
        let (tenant, thread) = (request.tenant.clone(), request.thread_id.clone());
        let run = new_run(request, &token, self.ports.entropy.exit_secret(), &now);
        let claimed = Claimed { run: run.seen(&now), token };
        state.add_run(run);
        state.settle(self.deployment(), &tenant, &thread, &now);
        drop(state);
        self.signals.run_changed(&claimed.token.run_id);
        Ok(Accepted::New(Box::new(claimed)))
    }

    async fn run(&self, tenant: &Tenant, run_id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        let now = self.now();
        Ok(self.lock().find(tenant, run_id).map(|run| run.seen(&now)))
    }

    async fn list_runs(&self, query: &ListRuns) -> Result<Vec<RunRecord>, StoreError> {
        let now = self.now();
        let state = self.lock();
        let key = |run: &Run| (run.record.started_at, run.record.run_id.clone());
        let mut found: Vec<&Run> = state
            .runs
            .iter()
            .filter(|run| run.record.tenant == query.tenant)
            .filter(|run| query.thread_id.as_ref().is_none_or(|thread| run.record.thread_id == *thread))
            .filter(|run| query.statuses.is_empty() || query.statuses.contains(&run.record.status))
            .filter(|run| query.after.as_ref().is_none_or(|after| key(run) < *after))
            .filter(|run| !query.undriven || (run.is_live() && run.seen(&now).driver.is_none()))
            .filter(|run| !query.detached || run.detached_since(&now).is_some())
            .collect();
        found.sort_by_key(|run| std::cmp::Reverse(key(run)));
        Ok(found.into_iter().take(query.limit).map(|run| run.seen(&now)).collect())
    }

    async fn find_active_run(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
    ) -> Result<Option<RunRecord>, StoreError> {
        let now = self.now();
        let state = self.lock();
        let found = state.runs.iter().find(|run| {
            run.record.tenant == *tenant
                && run.record.thread_id == *thread
                && run.record.status == Status::Running
        });
        Ok(found.map(|run| run.seen(&now)))
    }

    async fn claim(&self, request: Claim) -> Result<Claimed, ClaimError> {
        let now = self.now();
        let mut state = self.lock();
        let run_id = &request.run_id;
        let run = state.get_mut(run_id).ok_or_else(|| ClaimRefusal::RunNotFound(run_id.clone()))?;
        let facts = ClaimFacts {
            status: run.record.status,
            cancel: run.record.cancel_requested.map(|cancel| cancel.reason),
            lease: run.lease_now(&now),
            detached_for: run.detached_for(&now),
        };
        match decide::claim(&facts, &request.ask())? {
            Grant::New => run.record.driver_epoch += 1,
            Grant::Again => {}
        }
        run.nonce = Some(request.nonce.clone());
        run.lease = Some(new_lease(&request.owner, request.lease, &now));
        let claimed = Claimed { token: request.token(run.record.driver_epoch), run: run.seen(&now) };
        drop(state);
        self.signals.run_changed(run_id);
        Ok(claimed)
    }

    async fn renew(
        &self,
        owner: &OwnerId,
        claims: &[(RunId, u64)],
        lease: Duration,
    ) -> Result<Vec<Renewed>, StoreError> {
        let now = self.now();
        let mut renewed = Vec::new();
        let mut state = self.lock();
        for (run_id, epoch) in claims {
            let Some(run) = state.get_mut(run_id).filter(|run| run.record.driver_epoch == *epoch) else {
                continue;
            };
            let Some(held) = run.lease.as_mut().filter(|held| held.owner == *owner) else { continue };
            held.until = Now::plus(now.boot, lease);
            held.boot_id.clone_from(&now.boot_id);
            renewed.push(Renewed {
                run_id: run.record.run_id.clone(),
                epoch: *epoch,
                lease,
                cancel: run.record.cancel_requested,
            });
        }
        Ok(renewed)
    }

    async fn release(&self, token: &ClaimToken) -> Result<(), StoreError> {
        let mut state = self.lock();
        if let Ok(run) = state.fenced(token) {
            run.lease = None;
            run.nonce = None;
            drop(state);
            self.signals.run_changed(&token.run_id);
        }
        Ok(())
    }

    async fn request_cancel(
        &self,
        tenant: &Tenant,
        run_id: &RunId,
        reason: CancelReason,
        detached_for: Option<Duration>,
    ) -> Result<CancelOutcome, StoreError> {
        let now = self.now();
        let mut state = self.lock();
        let Some(run) = state.get_mut(run_id).filter(|run| run.record.tenant == *tenant) else {
            return Ok(CancelOutcome::NotFound);
        };
        let seen = run.seen(&now);
        let requested = seen.cancel_requested.is_some();
        match decide::cancel(seen.status, requested, detached_for.map(millis), run.detached_for(&now)) {
            CancelDecision::Terminal => return Ok(CancelOutcome::Terminal(Box::new(seen))),
            CancelDecision::AlreadyRequested => return Ok(CancelOutcome::AlreadyRequested(Box::new(seen))),
            CancelDecision::Watched => return Ok(CancelOutcome::Watched(Box::new(seen))),
            CancelDecision::Record => {}
        }
        run.record.cancel_requested = Some(Cancel { reason, at: now.wall });
        let seen = run.seen(&now);
        drop(state);
        self.signals.run_changed(run_id);
        Ok(CancelOutcome::Recorded(Box::new(seen)))
    }

    async fn note_stall(&self, token: &ClaimToken) -> Result<u32, WriteError> {
        let mut state = self.lock();
        let run = state.fenced(token)?;
        let tail = run.tail();
        run.stalls = if run.stalls.1 == tail { (run.stalls.0 + 1, tail) } else { (1, tail) };
        let count = run.stalls.0;
        run.lease = None;
        run.nonce = None;
        drop(state);
        self.signals.run_changed(&token.run_id);
        Ok(count)
    }

    async fn announce(&self, host: &HostSeen, lasts: Duration) -> Result<(), StoreError> {
        let until = Now::plus(self.now().wall, lasts);
        let mut state = self.lock();
        let (_, seen_until) = state.hosts.entry(host.owner.clone()).or_insert_with(|| (host.clone(), until));
        *seen_until = until;
        Ok(())
    }

    async fn hosts(&self) -> Result<Vec<HostSeen>, StoreError> {
        let now = self.now().wall;
        let mut state = self.lock();
        state.hosts.retain(|_, (_, until)| *until > now);
        Ok(state.hosts.values().map(|(host, _)| host.clone()).collect())
    }

    async fn presence(&self, run_id: &RunId, host: &OwnerId, until: PresenceUntil) -> Result<(), StoreError> {
        let now = self.now();
        if let Some(run) = self.lock().get_mut(run_id).filter(|run| run.is_live()) {
            match until {
                PresenceUntil::For(time) => {
                    run.presence.insert(host.clone(), Now::plus(now.wall, time));
                }
                // The entry stays: it says when the viewer left.
                PresenceUntil::Left => {
                    run.presence.entry(host.clone()).and_modify(|until| *until = now.wall.min(*until));
                }
            }
        }
        Ok(())
    }
}

fn accept_facts(state: &State, request: &Accept) -> AcceptFacts {
    let live = |test: &dyn Fn(&Run) -> bool| {
        state.runs.iter().find(|run| run.is_live() && test(run)).map(|run| run.record.run_id.clone())
    };
    AcceptFacts {
        existing: state.get(&request.run_id).map(|run| ExistingRun {
            thread_id: if run.record.tenant == request.tenant {
                run.record.thread_id.clone()
            } else {
                request.thread_id.clone()
            },
            // Another tenant's run is another request, whatever it asked for, and nothing of it is told.
            digest: if run.record.tenant == request.tenant {
                run.digest.clone()
            } else {
                format!("not {}", request.digest)
            },
            claim: run.lease.as_ref().map(|lease| lease.owner.clone()).zip(run.nonce.clone()),
        }),
        thread_deleted: state
            .session(&request.tenant, &request.thread_id)
            .is_some_and(|session| session.state != SessionState::Active),
        thread_run: state
            .runs_of(&request.tenant, &request.thread_id)
            .find(|run| run.is_live())
            .map(|run| run.record.run_id.clone()),
        workspace_run: request.spec.workspace.as_ref().and_then(|wanted| {
            live(&|run| {
                run.record
                    .spec
                    .workspace
                    .as_ref()
                    .is_some_and(|used| used.path == wanted.path && !(used.shared && wanted.shared))
            })
        }),
    }
}

fn new_lease(owner: &OwnerId, lease: Duration, now: &Now) -> StoredLease {
    StoredLease {
        owner: owner.clone(),
        boot_id: now.boot_id.clone(),
        until: Now::plus(now.boot, lease),
        since: now.wall,
    }
}

fn new_run(request: Accept, token: &ClaimToken, exit_secret: outlast_core::ExitSecret, now: &Now) -> Run {
    let messages: BTreeMap<_, _> =
        request.messages.into_iter().map(|message| (message.ordinal, message)).collect();
    let record = RunRecord {
        run_id: request.run_id,
        thread_id: request.thread_id,
        tenant: request.tenant,
        agent: request.spec.agent.clone(),
        model: request.spec.model.clone(),
        status: Status::Running,
        phase: Phase::Accepted,
        started_at: now.wall,
        finished_at: None,
        error: None,
        end_reason: None,
        usage: Vec::new(),
        exit_code: None,
        sandbox_key: None,
        instance_id: None,
        machine: None,
        detached_since: None,
        detached_ttl: request.detached_ttl.map(|ttl| Now::plus(0, ttl)),
        on_disconnect: request.on_disconnect,
        cancel_requested: None,
        driver_epoch: token.epoch,
        driver: None,
        tail: 0,
        sealed: false,
        agent_session: None,
        spec: request.spec,
        exit_secret,
        cursor: None,
    };
    let mut run = Run {
        record,
        digest: request.digest,
        lease: Some(new_lease(&token.owner, request.lease, now)),
        nonce: Some(token.nonce.clone()),
        last_batch: None,
        closed: false,
        events: Vec::new(),
        messages,
        ledgered: 0,
        presence: BTreeMap::new(),
        expired: false,
        stalls: (0, Seq::START),
    };
    let events = request.events.into_iter().map(|chunk| NewEvent::new(Origin::Host, chunk));
    run.push(events.collect(), now.wall);
    run
}
