//! The store and its life.

use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use async_trait::async_trait;
use outlast_core::OwnerId;
use outlast_core::run::Status;

use super::state::{Now, State};
use crate::{InstanceState, Ports, Signals, Store, StoreError, StoreStats};

/// Keeps everything in the process: its runs are gone when the process ends, which [`MemoryStore::new`] says once in the
/// log. Clones share what they hold.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    pub(super) signals: Arc<Signals>,
    pub(super) ports: Ports,
    deployment_id: Arc<str>,
    owner: Option<OwnerId>,
}

impl MemoryStore {
    /// An empty store. [`Store::close`] releases every claim.
    pub fn new(ports: Ports) -> Self {
        static SAID: Once = Once::new();
        SAID.call_once(|| {
            tracing::warn!("runs are kept in memory only: they are lost when this process ends");
        });
        MemoryStore::empty(ports)
    }

    /// An empty store for tests, where nobody needs to be told that it keeps nothing.
    #[cfg(feature = "conformance")]
    pub fn for_tests(ports: Ports) -> Self {
        MemoryStore::empty(ports)
    }

    fn empty(ports: Ports) -> Self {
        let deployment_id = ports.entropy.uuid().into();
        MemoryStore { state: Arc::default(), signals: Signals::shared(), ports, deployment_id, owner: None }
    }

    /// The same store as another process would see it: with a clock of its own, and [`Store::close`] releases the
    /// claims of this owner only.
    pub fn joined_by(&self, owner: OwnerId, ports: Ports) -> Self {
        MemoryStore { owner: Some(owner), ports, ..self.clone() }
    }

    pub(super) fn deployment(&self) -> &str {
        &self.deployment_id
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // Every write is complete before anything could panic, so a poisoned state is as good as any.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Now {
        Now::of(&self.ports)
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn deployment_id(&self) -> Result<String, StoreError> {
        Ok(self.deployment_id.to_string())
    }

    async fn now(&self) -> Result<u64, StoreError> {
        Ok(MemoryStore::now(self).wall)
    }

    async fn stats(&self) -> Result<StoreStats, StoreError> {
        let now = MemoryStore::now(self);
        let state = self.lock();
        let mut stats = StoreStats::default();
        for run in &state.runs {
            *stats.runs.entry(run.record.status.as_str()).or_default() += 1;
            stats.bytes += run.events.iter().map(|event| event.json.len() as u64).sum::<u64>();
            let detached_for = run.detached_for(&now);
            stats.detached += u64::from(detached_for.is_some());
            stats.undriven += u64::from(run.is_live() && run.seen(&now).driver.is_none());
            let ttl = run.record.detached_ttl;
            // A run that waits for a person has a time of its own.
            let over = detached_for.zip(ttl).is_some_and(|(time, ttl)| time >= ttl);
            stats.overdue += u64::from(over && run.record.status == Status::Running);
            stats.oldest_detached = stats.oldest_detached.max(detached_for);
        }
        for instance in state.instances.iter().filter(|instance| instance.state != InstanceState::Gone) {
            *stats.instances.entry(instance.state.as_str()).or_default() += 1;
            if let Some(reclaim) = &instance.reclaim {
                stats.reclaims_pending += u64::from(reclaim.at <= now.wall || reclaim.failed > 0);
                stats.reclaims_failed += u64::from(reclaim.failed > 0);
            }
        }
        Ok(stats)
    }

    async fn close(&self) {
        let own = |owner: &OwnerId| self.owner.as_ref().is_none_or(|own| own == owner);
        let mut state = self.lock();
        for lease in state.leases.values_mut() {
            lease.held.take_if(|(owner, ..)| own(owner));
        }
        for run in &mut state.runs {
            if run.lease.as_ref().is_some_and(|lease| own(&lease.owner)) {
                run.lease = None;
                run.nonce = None;
            }
        }
        drop(state);
        self.signals.any_changed();
    }
}

/// A request that Outlast itself should never make.
pub(super) fn defect(what: impl std::fmt::Display) -> StoreError {
    StoreError::Unusable { message: format!("internal error: {what}") }
}
