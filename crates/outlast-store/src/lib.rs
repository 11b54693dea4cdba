//! The port to durable state.
//!
//! The roles [`Runs`], [`Log`], [`Instances`] and [`Ledger`] are shaped by what must be atomic, not by tables. Together
//! they are a [`Store`]. No method is optional. [`MemoryStore`] keeps everything in the process; the conformance suite
//! (feature `conformance`) is what every backend must pass.

#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
pub mod fail;
mod ledger;
mod memory;
mod ports;
mod requests;
mod roles;
mod signal;

pub use error::{
    AcceptError, AppendError, ClaimError, DeleteError, FinishError, InstanceError, LeaseError, ReadError,
    ReclaimError, RecordsError, StoreError, WriteError,
};
pub use ledger::{
    AcquireLease, AppendRecords, LeaseGranted, LeaseOn, LeaseSeen, LeaseToken, ListSessions, MessagePage,
    MessageRow, NewMessage, NewRecord, Offloaded, Pin, ReadRecords, RecordAppended, RecordPage, SessionHead,
    SessionName, StoredRecord, run_ended, run_started,
};
pub use memory::MemoryStore;
pub use ports::{Clock, Entropy, Ports, SystemClock, SystemEntropy};
pub use requests::{
    Accept, Accepted, Append, Appended, BeginReclaim, CancelOutcome, Claim, Claimed, Finish, Finished,
    HostSeen, Instance, InstanceState, ListInstances, ListRuns, LogEnd, NewEvent, Page, PresenceUntil,
    Reclaim, ReclaimEnd, Renewed, StoreStats, StoredEvent, Swept,
};
pub use roles::{Instances, Ledger, Log, Runs, Store};
pub use signal::{Signal, Signals};
