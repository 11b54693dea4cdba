//! What a backend lends to the suite.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{OwnerId, RunId};

use super::ManualClock;
use crate::{Ports, Store};

/// One backend, empty at first.
#[async_trait]
pub trait Backend: Send + Sync {
    /// Opens the store as a process would that has this owner id and these ports. All stores of one backend see the
    /// same data; the suite opens several at a time, each owner once, and uses an owner only while its store is open.
    async fn open(&self, owner: OwnerId, ports: Ports) -> Arc<dyn Store>;

    /// Lets time pass for leases and presence. A backend whose time is not that of the ports overrides this.
    async fn pass(&self, clock: &ManualClock, time: Duration) {
        clock.advance(time);
    }

    /// Begins a transaction that has locked the run's row, and leaves it open. None where nothing can be held open so.
    async fn hold_open(&self, run_id: &RunId) -> Option<Box<dyn HeldOpen>> {
        let _ = run_id;
        None
    }

    /// Whether leases are counted from the boot of a machine, so that a reboot makes them void.
    fn counts_from_boot(&self) -> bool {
        true
    }
}

/// A transaction that is held open.
#[async_trait]
pub trait HeldOpen: Send + Sync {
    /// How many others wait for it.
    async fn waiting(&self) -> usize;

    /// Ends it without a change; whoever waits goes on, in the order in which they came.
    async fn let_go(self: Box<Self>);
}
