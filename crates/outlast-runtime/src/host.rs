//! One process that may drive runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use outlast_agents::Agent;
use outlast_core::run::{ClaimToken, Purpose, RunRecord};
use outlast_core::{OwnerId, RunId, Tenant};
use outlast_sandbox::Provider;
use outlast_session::Sessions;
use outlast_session::objects::Objects;
use outlast_store::{Claim, ClaimError, Claimed, Ports, Store, StoreError};

use crate::claim::{Claims, Held, renew_for_ever};
use crate::hold::{Hold, WritesAway};
use crate::reap::SweepFrom;
use crate::{Environment, Notices, Options};

/// What a host is made of.
#[derive(Debug)]
pub struct HostConfig {
    /// Its identity, new at every start of a process; the same that the store was opened with.
    pub owner: OwnerId,
    /// The durable state.
    pub store: Arc<dyn Store>,
    /// The sandboxes that it reaches.
    pub provider: Arc<dyn Provider>,
    /// Where large bodies and snapshots of workspaces are.
    pub objects: Objects,
    /// The kinds of agent that it knows.
    pub agents: fn(&str) -> Option<&'static dyn Agent>,
    /// Time and randomness.
    pub ports: Ports,
    /// Variables for agents.
    pub environment: Environment,
    /// Whose runs it handles.
    pub tenant: Tenant,
    /// Times and sizes.
    pub options: Options,
    /// Who is told of what goes on.
    pub notices: Notices,
}

/// A host. Cheap to clone. Needs a Tokio runtime.
#[derive(Debug, Clone)]
pub struct Host {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) owner: OwnerId,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) objects: Objects,
    pub(crate) sessions: tokio::sync::OnceCell<Sessions>,
    pub(crate) agents: fn(&str) -> Option<&'static dyn Agent>,
    pub(crate) ports: Ports,
    pub(crate) environment: Environment,
    pub(crate) tenant: Tenant,
    pub(crate) options: Options,
    pub(crate) notices: Notices,
    pub(crate) claims: Arc<Claims>,
    pub(crate) writes_away: WritesAway,
    pub(crate) sweep_from: SweepFrom,
    /// How many events this process has added to logs.
    pub(crate) appended: AtomicU64,
}

impl Host {
    /// Starts the host and the renewal of its leases.
    pub fn new(config: HostConfig) -> Host {
        let inner = Arc::new(Inner {
            owner: config.owner,
            store: config.store,
            provider: config.provider,
            objects: config.objects,
            sessions: tokio::sync::OnceCell::new(),
            agents: config.agents,
            ports: config.ports,
            environment: config.environment,
            tenant: config.tenant,
            options: config.options,
            notices: config.notices,
            claims: Arc::default(),
            writes_away: WritesAway::default(),
            sweep_from: SweepFrom::default(),
            appended: AtomicU64::new(0),
        });
        tokio::spawn(renew_for_ever(Arc::downgrade(&inner)));
        Host { inner }
    }

    /// The durable state.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    /// Its identity: what the claims of this process name.
    pub fn owner(&self) -> &OwnerId {
        &self.inner.owner
    }

    /// Time and randomness.
    pub fn ports(&self) -> &Ports {
        &self.inner.ports
    }

    /// The machine whose sandboxes it reaches, where its provider's are bound to one.
    pub fn machine(&self) -> Option<&str> {
        self.inner.provider.machine()
    }

    /// How many events this process has added to logs.
    pub fn appended(&self) -> u64 {
        self.inner.appended.load(Ordering::Relaxed)
    }

    /// About how many bytes the journals take that this host reaches.
    pub async fn journal_bytes(&self) -> Result<u64, outlast_sandbox::ProviderError> {
        self.inner.provider.journal_bytes().await
    }

    /// Whose runs it handles.
    pub fn tenant(&self) -> &Tenant {
        &self.inner.tenant
    }

    /// The directory in which the run's agent works, on this machine; none where the run has no sandbox yet.
    pub fn workspace(&self, run: &RunRecord) -> Option<std::path::PathBuf> {
        let lent = run.spec.workspace.as_ref().map(|workspace| workspace.path.as_str());
        run.instance_id.as_ref().map(|instance| self.inner.provider.paths(instance, lent).workspace)
    }

    /// The run, or none. Waits for a store that is away.
    pub async fn run(&self, run_id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        self.inner.run(run_id).await
    }
}

impl Inner {
    /// For operations that write.
    pub(crate) fn hold(&self) -> Hold<'_> {
        Hold::new(&*self.ports.clock, &self.notices, self.options.store_patience, Some(&self.writes_away))
    }

    /// For operations that read.
    pub(crate) fn hold_reads(&self) -> Hold<'_> {
        Hold::new(&*self.ports.clock, &self.notices, self.options.store_patience, None)
    }

    /// The machine that the run's sandbox is on, where that is another one than this host reaches.
    pub(crate) fn elsewhere<'r>(&self, run: &'r RunRecord) -> Option<&'r str> {
        let here = self.provider.machine()?;
        run.machine.as_deref().filter(|machine| *machine != here)
    }

    pub(crate) async fn run(&self, run_id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        let mut hold = self.hold_reads();
        loop {
            match self.store.run(&self.tenant, run_id).await {
                Ok(run) => {
                    hold.done();
                    return Ok(run);
                }
                Err(error) => hold.wait(error).await?,
            }
        }
    }

    /// Claims the run, or tells why not. Waits for a store that is away; a claim whose answer was lost is granted when it
    /// is asked for again.
    pub(crate) async fn claim(
        &self,
        run_id: &RunId,
        purpose: Purpose,
    ) -> Result<(Held, RunRecord), ClaimError> {
        let mut hold = self.hold();
        let request = self.claim_request(run_id, purpose, None);
        loop {
            let asked_at = self.ports.clock.boot_ms();
            match self.store.claim(request.clone()).await {
                Ok(claimed) => {
                    hold.done();
                    return Ok(self.held(claimed, asked_at));
                }
                Err(ClaimError::Store(error)) => hold.wait(error).await?,
                Err(refused) => {
                    hold.done();
                    return Err(refused);
                }
            }
        }
    }

    /// Claims the run on this condition, or tells why not, without waiting for a store that is away.
    pub(crate) async fn claim_once(
        &self,
        run_id: &RunId,
        purpose: Purpose,
        detached_for: Option<Duration>,
    ) -> Result<(Held, RunRecord), ClaimError> {
        let asked_at = self.ports.clock.boot_ms();
        let claimed = self.store.claim(self.claim_request(run_id, purpose, detached_for)).await?;
        Ok(self.held(claimed, asked_at))
    }

    fn claim_request(&self, run_id: &RunId, purpose: Purpose, detached_for: Option<Duration>) -> Claim {
        Claim {
            run_id: run_id.clone(),
            owner: self.owner.clone(),
            nonce: self.ports.entropy.nonce(),
            purpose,
            lease: self.options.lease,
            detached_for,
        }
    }

    pub(crate) fn held(&self, claimed: Claimed, asked_at: u64) -> (Held, RunRecord) {
        let clock = self.ports.clock.clone();
        let cancel = claimed.run.cancel_requested;
        (self.claims.hold(claimed.token, clock, asked_at, self.options.lease, cancel), claimed.run)
    }

    /// Gives a claim back. Best effort: a lease that cannot be given back runs out.
    pub(crate) async fn release(&self, token: &ClaimToken) {
        if let Err(error) = self.store.release(token).await {
            tracing::debug!(%error, run = %token.run_id, "the claim runs out by itself");
        }
    }
}
