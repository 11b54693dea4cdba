//! A host's way to the store.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::run::{CancelReason, ClaimToken, RunRecord};
use outlast_core::{InstanceId, OwnerId, RunId, Seq, Tenant, ThreadId};
use outlast_store::{
    Accept, AcceptError, Accepted, Append, AppendError, Appended, BeginReclaim, CancelOutcome, Claim,
    ClaimError, Claimed, Finish, FinishError, Finished, HostSeen, Instance, InstanceError, Instances,
    ListInstances, ListRuns, Log, MemoryStore, NewEvent, Page, PresenceUntil, ReadError, ReclaimEnd,
    ReclaimError, Renewed, Runs, Signal, Signals, Store, StoreError, StoreStats, Swept, WriteError,
};

use super::clock::Time;
use super::gate::Gate;
use super::history::History;
use super::plan::Plan;
use super::sessions::Watch;
use crate::dice::Dice;

/// A store that is slow, fails, or does what it is told and says that it has failed.
#[derive(Debug)]
pub(super) struct SimStore {
    pub name: String,
    pub inner: MemoryStore,
    pub time: Time,
    pub gate: Gate,
    pub dice: Dice,
    pub trouble: Arc<AtomicBool>,
    /// Runs that cannot be looked up.
    pub broken_lookups: Arc<Mutex<BTreeSet<RunId>>>,
    pub plan: Plan,
    pub history: History,
    /// Who looks at every change at the moment at which it is made.
    pub watch: Option<Arc<Watch>>,
}

impl SimStore {
    pub(super) fn watch(&self, look: impl FnOnce(&Watch)) {
        if let Some(watch) = &self.watch {
            look(watch);
        }
    }

    pub(super) async fn way<T, E: From<StoreError>>(
        &self,
        what: &str,
        run: &(dyn std::fmt::Display + Sync),
        quiet: bool,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        self.gate.pass().await;
        let trouble = self.trouble.load(Ordering::Relaxed);
        let away = || E::from(StoreError::Unavailable { message: "simulated".to_owned() });
        let slow = trouble && self.dice.permille(self.plan.delay);
        let time = if slow { self.dice.between(100, 4000) } else { self.dice.between(1, 4) };
        self.time.sleep(Duration::from_millis(time)).await;
        self.gate.pass().await;
        let note = |outcome: &str| {
            if !quiet {
                self.history.note(format!("{} {what} {run} {outcome}", self.name));
            }
        };
        if trouble && self.dice.permille(self.plan.fail) {
            note("fails");
            return Err(away());
        }
        let lost = trouble && self.dice.permille(self.plan.lose);
        let done = work.await;
        note(match (&done, lost) {
            (Ok(_), false) => "ok",
            (Ok(_), true) => "ok, lost",
            (Err(_), false) => "refused",
            (Err(_), true) => "refused, lost",
        });
        self.gate.pass().await;
        if lost { Err(away()) } else { done }
    }
}

pub(super) const ALL: &str = "-";

#[async_trait]
impl Runs for SimStore {
    async fn accept(&self, request: Accept) -> Result<Accepted, AcceptError> {
        let run = request.run_id.clone();
        let work = async {
            let done = self.inner.accept(request.clone()).await;
            self.watch(|watch| watch.accepted(&request, &done));
            done
        };
        self.way("accept", &run, false, work).await
    }

    async fn run(&self, tenant: &Tenant, run_id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        if self.broken_lookups.lock().unwrap_or_else(PoisonError::into_inner).contains(run_id) {
            return Err(StoreError::Unavailable { message: "simulated".to_owned() });
        }
        self.way("run", run_id, true, self.inner.run(tenant, run_id)).await
    }

    async fn list_runs(&self, query: &ListRuns) -> Result<Vec<RunRecord>, StoreError> {
        self.way("list", &ALL, true, self.inner.list_runs(query)).await
    }

    async fn find_active_run(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
    ) -> Result<Option<RunRecord>, StoreError> {
        self.way("active", thread, true, self.inner.find_active_run(tenant, thread)).await
    }

    async fn claim(&self, request: Claim) -> Result<Claimed, ClaimError> {
        let run_id = request.run_id.clone();
        self.way("claim", &run_id, false, self.inner.claim(request)).await
    }

    async fn renew(
        &self,
        owner: &OwnerId,
        held: &[(RunId, u64)],
        lease: Duration,
    ) -> Result<Vec<Renewed>, StoreError> {
        self.way("renew", &ALL, false, self.inner.renew(owner, held, lease)).await
    }

    async fn release(&self, token: &ClaimToken) -> Result<(), StoreError> {
        self.way("release", &token.run_id, false, self.inner.release(token)).await
    }

    async fn request_cancel(
        &self,
        tenant: &Tenant,
        run_id: &RunId,
        reason: CancelReason,
        detached_for: Option<Duration>,
    ) -> Result<CancelOutcome, StoreError> {
        let work = self.inner.request_cancel(tenant, run_id, reason, detached_for);
        self.way("cancel", run_id, false, work).await
    }

    async fn note_stall(&self, token: &ClaimToken) -> Result<u32, WriteError> {
        self.way("stall", &token.run_id, false, self.inner.note_stall(token)).await
    }

    async fn announce(&self, host: &HostSeen, lasts: Duration) -> Result<(), StoreError> {
        self.way("announce", &ALL, true, self.inner.announce(host, lasts)).await
    }

    async fn hosts(&self) -> Result<Vec<HostSeen>, StoreError> {
        self.way("hosts", &ALL, true, self.inner.hosts()).await
    }

    async fn presence(&self, run_id: &RunId, host: &OwnerId, until: PresenceUntil) -> Result<(), StoreError> {
        self.way("presence", run_id, true, self.inner.presence(run_id, host, until)).await
    }
}

#[async_trait]
impl Log for SimStore {
    async fn launched(
        &self,
        token: &ClaimToken,
        expected_tail: Seq,
        events: Vec<NewEvent>,
    ) -> Result<Appended, AppendError> {
        self.way("launched", &token.run_id, false, self.inner.launched(token, expected_tail, events)).await
    }

    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        let run = append.token.run_id.clone();
        let work = async {
            let done = self.inner.append(append.clone()).await;
            self.watch(|watch| watch.appended(&append, done.is_ok()));
            done
        };
        self.way("append", &run, false, work).await
    }

    async fn finish(&self, finish: Finish) -> Result<Finished, FinishError> {
        let run = finish.append.token.run_id.clone();
        let work = async {
            let done = self.inner.finish(finish.clone()).await;
            self.watch(|watch| watch.finished(&finish, &done));
            done
        };
        self.way("finish", &run, false, work).await
    }

    async fn read(
        &self,
        tenant: &Tenant,
        run_id: &RunId,
        after: Seq,
        max_events: usize,
        max_bytes: usize,
    ) -> Result<Page, ReadError> {
        self.way("read", run_id, true, self.inner.read(tenant, run_id, after, max_events, max_bytes)).await
    }

    async fn expire_events(&self, ended_for: Duration, max_rows: usize) -> Result<Swept, StoreError> {
        self.way("expire", &ALL, false, self.inner.expire_events(ended_for, max_rows)).await
    }

    async fn count_expired(&self, ended_for: Duration) -> Result<Swept, StoreError> {
        self.way("count-expired", &ALL, true, self.inner.count_expired(ended_for)).await
    }

    /// No hint ever comes: whoever relies on one would stand still here. And which of several waiters wakes first is
    /// Tokio's choice, which no seed decides.
    fn subscribe(&self, run_id: &RunId) -> Signal {
        Signals::default().subscribe(run_id)
    }
}

#[async_trait]
impl Instances for SimStore {
    async fn create_instance(&self, token: &ClaimToken, instance: &Instance) -> Result<(), InstanceError> {
        self.way("create-instance", &token.run_id, false, self.inner.create_instance(token, instance)).await
    }

    async fn use_instance(&self, token: &ClaimToken, instance: &InstanceId) -> Result<(), InstanceError> {
        self.way("use-instance", &token.run_id, false, self.inner.use_instance(token, instance)).await
    }

    async fn instance_created(&self, instance: &InstanceId) -> Result<(), InstanceError> {
        self.way("instance-created", instance, false, self.inner.instance_created(instance)).await
    }

    async fn begin_reclaim(&self, request: &BeginReclaim) -> Result<Instance, ReclaimError> {
        let work = self.inner.begin_reclaim(request);
        self.way("begin-reclaim", &request.instance_id, false, work).await
    }

    async fn end_reclaim(
        &self,
        instance: &InstanceId,
        owner: &OwnerId,
        end: &ReclaimEnd,
    ) -> Result<(), StoreError> {
        self.way("end-reclaim", instance, false, self.inner.end_reclaim(instance, owner, end)).await
    }

    async fn list_instances(&self, query: &ListInstances) -> Result<Vec<Instance>, StoreError> {
        self.way("list-instances", &ALL, true, self.inner.list_instances(query)).await
    }

    async fn instance(&self, instance: &InstanceId) -> Result<Option<Instance>, StoreError> {
        self.way("instance", instance, true, self.inner.instance(instance)).await
    }

    async fn find_instance(
        &self,
        sandbox_key: &str,
        machine: Option<&str>,
    ) -> Result<Option<Instance>, StoreError> {
        self.way("find-instance", &ALL, true, self.inner.find_instance(sandbox_key, machine)).await
    }
}

#[async_trait]
impl Store for SimStore {
    async fn deployment_id(&self) -> Result<String, StoreError> {
        self.inner.deployment_id().await
    }

    async fn now(&self) -> Result<u64, StoreError> {
        self.way("now", &ALL, true, Store::now(&self.inner)).await
    }

    async fn stats(&self) -> Result<StoreStats, StoreError> {
        self.way("stats", &ALL, true, self.inner.stats()).await
    }

    async fn close(&self) {}
}
