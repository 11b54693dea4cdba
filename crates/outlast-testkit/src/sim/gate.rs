//! Whether a host runs, stands still, or is dead.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    Running,
    /// Stands still, and will go on as if nothing had been (SIGSTOP, a paused machine).
    Frozen,
    /// Never goes on (kill -9). Its tasks are still there and wait for ever.
    Dead,
}

/// A host passes its gate before and after everything that it does to the world outside of it. So it stops between any two
/// steps, and what it had decided before it stopped is what it does when it goes on.
#[derive(Debug, Clone)]
pub(super) struct Gate(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    life: Mutex<Life>,
    /// Wakes in the order in which they came, unlike a watch channel, which leaves that to chance.
    changed: Notify,
}

impl Gate {
    pub fn new() -> Gate {
        Gate(Arc::new(Inner { life: Mutex::new(Life::Running), changed: Notify::new() }))
    }

    pub fn life(&self) -> Life {
        *self.0.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set(&self, life: Life) {
        {
            let mut now = self.0.life.lock().unwrap_or_else(PoisonError::into_inner);
            // The dead do not rise.
            if *now == Life::Dead {
                return;
            }
            *now = life;
        }
        self.0.changed.notify_waiters();
    }

    /// Returns while the host runs.
    pub async fn pass(&self) {
        loop {
            let changed = self.0.changed.notified();
            if self.life() == Life::Running {
                return;
            }
            changed.await;
        }
    }
}
