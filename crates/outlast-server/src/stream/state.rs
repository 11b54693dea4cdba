//! What a stream tells of its run besides events.

use outlast_core::Seq;
use outlast_core::run::{Driver, Phase, RunError, RunRecord, Status};
use outlast_core::{OwnerId, RunId};
use serde::Serialize;

/// What a client can act on: show Stop or Send, say that the agent works on while nobody watches, notice that another
/// process drives.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunState {
    pub run_id: RunId,
    pub status: Status,
    pub phase: Phase,
    /// Whether a Stop would do something.
    pub can_cancel: bool,
    pub cancel_requested: bool,
    pub detached_since: Option<u64>,
    /// Who drives it, if anybody does.
    pub driver: Option<OwnerId>,
    pub driver_epoch: u64,
    pub error: Option<RunError>,
}

impl RunState {
    pub fn of(run: &RunRecord) -> RunState {
        RunState {
            run_id: run.run_id.clone(),
            status: run.status,
            phase: run.phase,
            can_cancel: !run.status.is_terminal() && run.cancel_requested.is_none(),
            cancel_requested: run.cancel_requested.is_some(),
            detached_since: run.detached_since,
            driver: run.driver.as_ref().map(|Driver { owner, .. }| owner.clone()),
            driver_epoch: run.driver_epoch,
            error: run.error.clone(),
        }
    }
}

/// A heartbeat's data: enough to notice a connection that is dead, and a client that has missed something.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Heartbeat {
    /// The place of this stream.
    pub offset: String,
    pub status: Option<Status>,
    /// The server's time in milliseconds since 1970.
    pub at: u64,
}

impl Heartbeat {
    pub fn new(place: Seq, state: Option<&RunState>, at: u64) -> Heartbeat {
        Heartbeat { offset: place.offset(), status: state.map(|state| state.status), at }
    }
}
