//! What a host tells the people who operate it, while it goes on.

use std::sync::Arc;

use outlast_core::{RunId, WorkspaceRef};

/// Something that a person may want to know. Never an end: what is told here is being dealt with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The store is not available; the host holds and tries again.
    StoreUnavailable {
        /// What is wrong.
        message: String,
    },
    /// The store is available again.
    StoreBack,
    /// The agent was launched.
    Launched {
        /// The run.
        run_id: RunId,
    },
    /// This host drives the run now, in succession of another.
    TookOver {
        /// The run.
        run_id: RunId,
        /// The claim's epoch.
        epoch: u64,
    },
    /// The workspace was snapshotted.
    Checkpointed {
        /// The run after which.
        run_id: RunId,
        /// The snapshot.
        reference: WorkspaceRef,
        /// The number of the record that names it.
        seq: u64,
    },
    /// The run's sandbox was given the thread's workspace.
    Restored {
        /// The run.
        run_id: RunId,
        /// The snapshot.
        reference: WorkspaceRef,
    },
    /// Another host has taken the run over; this one goes on as a reader.
    Superseded {
        /// The run.
        run_id: RunId,
    },
    /// This host cannot drive the run; it serves what is stored.
    CannotDrive {
        /// The run.
        run_id: RunId,
        /// Why, and what to do.
        message: String,
    },
}

/// Who is told.
#[derive(Clone)]
pub struct Notices(Arc<dyn Fn(Notice) + Send + Sync>);

impl Notices {
    /// Calls this for each notice. Must not block.
    pub fn new(tell: impl Fn(Notice) + Send + Sync + 'static) -> Self {
        Notices(Arc::new(tell))
    }

    /// Writes to the log.
    pub fn to_log() -> Self {
        Notices::new(|notice| tracing::info!(?notice, "notice"))
    }

    pub(crate) fn tell(&self, notice: Notice) {
        (self.0)(notice);
    }
}

impl std::fmt::Debug for Notices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Notices")
    }
}
