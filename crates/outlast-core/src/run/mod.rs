//! The run record: what a run is, and what is known of it.

mod launch;
mod record;
mod status;

pub use launch::{LaunchSpec, SandboxSpec, Workspace, request_digest, sandbox_key};
pub use record::{Cancel, ClaimToken, Cursor, Driver, RunError, RunRecord, Usage};
pub use status::{CancelReason, EndReason, OnDisconnect, Phase, Purpose, Status};
