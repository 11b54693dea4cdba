//! What lasts of a thread beyond its delivery logs and sandboxes.
//!
//! [`Sessions`] is the way to it: ledgers, which are in the store; bodies that are too large for it ([`bodies`]), and their
//! collection ([`collect`]); snapshots of workspaces ([`workspace`]). All of these lie in object storage ([`objects`]).

pub mod bodies;
mod checkpoint;
pub mod collect;
mod lease;
mod lookup;
pub mod objects;
mod pages;
mod records;
mod sessions;
pub mod transfer;
pub mod upkeep;
pub mod workspace;

pub use checkpoint::{CheckpointError, CheckpointOptions, Checkpointed, RestoreWorkspaceError};
pub use lease::{LEASE, Lease};
pub use lookup::{CheckpointSummary, WorkspaceScanError};
use outlast_store::fail;
pub use records::{AddError, put_again, warn};
pub use sessions::Sessions;
