//! A held claim, and what the renewals say of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast_core::RunId;
use outlast_core::run::{Cancel, ClaimToken};
use outlast_store::{Clock, Renewed};
use tokio::sync::watch;

/// What is known of a held claim.
#[derive(Debug, Clone, Copy)]
struct State {
    /// Until when the lease runs at least, on this host's boot clock.
    until: u64,
    /// Another host has it, or the run has ended.
    lost: bool,
    cancel: Option<Cancel>,
}

/// A claim that this host holds for as long as it keeps the value.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) token: ClaimToken,
    clock: Arc<dyn Clock>,
    state: watch::Receiver<State>,
    claims: Arc<Claims>,
}

impl Held {
    /// Whether this host may go on as the driver. False from the moment that the lease may have run out, which the host
    /// judges by itself, on a clock that also runs while the machine sleeps.
    pub(crate) fn is_valid(&self) -> bool {
        let state = *self.state.borrow();
        !state.lost && self.clock.boot_ms() < state.until
    }

    /// Whether another host is known to have it, or the run to have ended.
    pub(crate) fn is_lost(&self) -> bool {
        self.state.borrow().lost
    }

    /// The cancel that the last renewal has told of.
    pub(crate) fn cancel(&self) -> Option<Cancel> {
        self.state.borrow().cancel
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.claims.forget(&self.token);
    }
}

/// All claims of this host.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    held: Mutex<BTreeMap<RunId, (u64, watch::Sender<State>)>>,
}

impl Claims {
    /// Registers a claim that was granted, by a request made at `asked_at` (boot clock).
    pub(crate) fn hold(
        self: &Arc<Self>,
        token: ClaimToken,
        clock: Arc<dyn Clock>,
        asked_at: u64,
        lease: Duration,
        cancel: Option<Cancel>,
    ) -> Held {
        let until = asked_at + lease.as_millis() as u64;
        let (sender, state) = watch::channel(State { until, lost: false, cancel });
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.insert(token.run_id.clone(), (token.epoch, sender));
        Held { token, clock, state, claims: Arc::clone(self) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Takes a renewal's answer. The lease is counted from before the request, so that this host never believes in it
    /// for longer than the store does. A claim that was made after the request is not in the answer and no worse for it.
    pub(crate) fn renewed(&self, answer: &[Renewed], asked_at: u64, held_before: &[(RunId, u64)]) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        for (run_id, epoch) in held_before {
            let Some((current, sender)) = held.get(run_id) else {
                continue;
            };
            if current != epoch {
                continue;
            }
            match answer.iter().find(|renewed| renewed.run_id == *run_id && renewed.epoch == *epoch) {
                Some(renewed) => sender.send_modify(|state| {
                    state.until = state.until.max(asked_at + renewed.lease.as_millis() as u64);
                    state.cancel = renewed.cancel.or(state.cancel);
                }),
                None => sender.send_modify(|state| state.lost = true),
            }
        }
    }

    /// The runs and epochs that are held now.
    pub(crate) fn list(&self) -> Vec<(RunId, u64)> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter().map(|(run_id, (epoch, _))| (run_id.clone(), *epoch)).collect()
    }

    fn forget(&self, token: &ClaimToken) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.get(&token.run_id).is_some_and(|(epoch, _)| *epoch == token.epoch) {
            held.remove(&token.run_id);
        }
    }
}
