//! The port to durable state.
//!
//! The roles [`Runs`], [`Log`], [`Instances`] and [`Ledger`] are shaped by what must be atomic, not by tables. Together
//! they are a [`Store`]. No method is optional. [`MemoryStore`] keeps everything in the process; the conformance suite
//! (feature `conformance`) is what every backend must pass.

#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod memory;
mod ports;
mod requests;
mod roles;
mod signal;

pub use error::{
    AcceptError, AppendError, ClaimError, FinishError, InstanceError, ReadError, ReclaimError, StoreError,
    WriteError,
};
pub use memory::MemoryStore;
pub use ports::{Clock, Entropy, Ports, SystemClock, SystemEntropy};
pub use requests::{
    Accept, Accepted, Append, Appended, BeginReclaim, CancelOutcome, Claim, Claimed, Finish, Finished,
    HostSeen, Instance, InstanceState, ListInstances, ListRuns, LogEnd, MessageRow, NewEvent, Page,
    PresenceUntil, Reclaim, ReclaimEnd, Renewed, StoreStats, StoredEvent, Swept,
};
pub use roles::{Instances, Ledger, Log, Runs, Store};
pub use signal::{Signal, Signals};
