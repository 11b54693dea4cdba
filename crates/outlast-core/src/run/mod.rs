//! The run record: what a run is, and what is known of it.

mod change;
mod launch;
mod record;
mod status;

pub use change::{Change, changes};
pub use launch::{LaunchSpec, Lifecycle, Reuse, SandboxSpec, Workspace, request_digest, sandbox_key};
pub use record::{Cancel, ClaimToken, Cursor, Driver, RunError, RunRecord, Usage};
pub use status::{CancelReason, EndReason, OnDisconnect, Phase, Purpose, Status};
