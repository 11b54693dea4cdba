//! Leases that renew themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use outlast_core::duration::millis;
use outlast_core::ledger::SessionId;
use outlast_store::{AcquireLease, Clock, LeaseError, LeaseOn, LeaseToken, Store, StoreError};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::Sessions;

/// How long a lease runs unless it is renewed, which happens at a third of that (the relative's figures).
pub const LEASE: Duration = Duration::from_secs(30);

/// A lease that is held, and renewed for as long as the value is kept. Dropped without [`Lease::release`], it runs out by
/// itself.
#[derive(Debug)]
pub struct Lease {
    token: LeaseToken,
    note: Option<(u64, u64)>,
    store: Arc<dyn Store>,
    state: Arc<State>,
    lost: watch::Receiver<bool>,
    renewing: JoinHandle<()>,
}

#[derive(Debug)]
struct State {
    clock: Arc<dyn Clock>,
    /// Until when it runs at least, on this host's boot clock.
    until: AtomicU64,
    lost: AtomicBool,
}

impl State {
    fn valid(&self) -> bool {
        !self.lost.load(Ordering::SeqCst) && self.clock.boot_ms() < self.until.load(Ordering::SeqCst)
    }
}

impl Lease {
    /// Rises with every grant of a lease on the same thing.
    pub fn epoch(&self) -> u64 {
        self.token.epoch
    }

    /// Proof of it, for writes that are made under it.
    pub fn token(&self) -> &LeaseToken {
        &self.token
    }

    /// What its last holder noted, and when.
    pub fn note(&self) -> Option<(u64, u64)> {
        self.note
    }

    /// Whether it is held. False from the moment that it may have run out, which the host judges by itself, on a clock
    /// that also runs while the machine sleeps.
    pub fn valid(&self) -> bool {
        self.state.valid()
    }

    /// Returns when it is lost.
    pub async fn lost(&self) {
        let mut lost = self.lost.clone();
        // The sender lives in the renewing task, which only ends with a loss or with this value.
        let _ = lost.wait_for(|lost| *lost).await;
    }

    /// Gives it back, with a note for the next holder.
    pub async fn release(self, note: Option<u64>) -> Result<(), StoreError> {
        self.renewing.abort();
        self.state.lost.store(true, Ordering::SeqCst);
        self.store.release_lease(&self.token, note).await
    }
}

/// What was done under a lease was done, and is told, whether or not the lease could be given back.
pub(crate) fn given_back(released: Result<(), StoreError>) {
    if let Err(error) = released {
        tracing::debug!(%error, "a lease could not be given back: it runs out");
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

impl Sessions {
    /// Takes the lease on a session's upkeep, or says who holds it.
    pub async fn acquire_lease(&self, session: &SessionId) -> Result<Lease, LeaseError> {
        self.lease_on(LeaseOn::Session(session.clone())).await
    }

    /// Takes a lease, or says who holds it. An answer that is lost is asked for once more.
    pub(crate) async fn lease_on(&self, on: LeaseOn) -> Result<Lease, LeaseError> {
        let request =
            AcquireLease { on, owner: self.owner.clone(), nonce: self.ports.entropy.nonce(), lasts: LEASE };
        let clock = self.ports.clock.clone();
        let mut asked_at = clock.boot_ms();
        let granted = match self.store.acquire_lease(&request).await {
            Err(LeaseError::Store(error)) if error.is_transient() => {
                asked_at = clock.boot_ms();
                self.store.acquire_lease(&request).await?
            }
            answer => answer?,
        };
        let state = Arc::new(State {
            clock,
            until: AtomicU64::new(asked_at + millis(LEASE)),
            lost: AtomicBool::new(false),
        });
        let (tell, lost) = watch::channel(false);
        let renewing = tokio::spawn(renew(self.store.clone(), granted.token.clone(), state.clone(), tell));
        let (token, note) = (granted.token, granted.note);
        Ok(Lease { token, note, store: self.store.clone(), state, lost, renewing })
    }
}

/// Renews until the lease is lost. A store that is away is asked again until the lease has run out.
async fn renew(store: Arc<dyn Store>, token: LeaseToken, state: Arc<State>, tell: watch::Sender<bool>) {
    let mut wait = LEASE / 3;
    loop {
        state.clock.sleep(wait).await;
        let asked_at = state.clock.boot_ms();
        match store.renew_lease(&token, LEASE).await {
            Ok(true) => {
                state.until.store(asked_at + millis(LEASE), Ordering::SeqCst);
                wait = LEASE / 3;
            }
            Ok(false) => break,
            Err(_) if state.valid() => wait = Duration::from_secs(1),
            Err(_) => break,
        }
    }
    state.lost.store(true, Ordering::SeqCst);
    let _ = tell.send(true);
}
