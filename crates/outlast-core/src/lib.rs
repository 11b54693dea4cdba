//! The words, rules and formats of Outlast.
//!
//! Everything here is plain data and pure functions: no I/O, no clock, no randomness, no async. Crates that do I/O ask
//! this crate for every decision (may this claim be granted, how does this run end, has this agent finished) and carry
//! the answer out.

pub mod align;
pub mod canonical;
mod code;
pub mod decide;
pub mod duration;
pub mod encoding;
pub mod event;
pub mod hex;
mod ids;
pub mod journal;
pub mod ledger;
mod offset;
pub mod run;
mod secret;
pub mod shim;
pub mod transcript;
mod workspace_ref;

pub use code::ErrorCode;
pub use ids::{IdError, InstanceId, OwnerId, RunId, Tenant, ThreadId};
pub use offset::{Offset, OffsetError, Seq};
pub use secret::{ExitSecret, Nonce};
pub use workspace_ref::{WorkspaceRef, WorkspaceRefError};
