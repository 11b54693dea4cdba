//! The row that says what a run is.

use serde::{Deserialize, Serialize};

use super::{CancelReason, EndReason, LaunchSpec, OnDisconnect, Phase, Status};
use crate::{ErrorCode, ExitSecret, InstanceId, Nonce, OwnerId, RunId, Tenant, ThreadId};

/// A run, as the store knows it. Serialises to what users see; the launch spec and the exit secret stay inside.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRecord {
    /// The run.
    pub run_id: RunId,
    /// Its conversation.
    pub thread_id: ThreadId,
    /// Whose it is.
    pub tenant: Tenant,
    /// The agent's name.
    pub agent: String,
    /// The model that was asked for.
    pub model: Option<String>,
    /// What it is doing.
    pub status: Status,
    /// How far the launch is known to be.
    pub phase: Phase,
    /// When it was accepted, in milliseconds since 1970 on the store's clock.
    pub started_at: u64,
    /// When it ended.
    pub finished_at: Option<u64>,
    /// Why it failed or was aborted.
    pub error: Option<RunError>,
    /// Why it ended.
    pub end_reason: Option<EndReason>,
    /// What it used, one entry per model.
    pub usage: Vec<Usage>,
    /// The agent's exit status.
    pub exit_code: Option<i32>,
    /// The key of its sandbox.
    pub sandbox_key: Option<String>,
    /// The sandbox that was really created for it.
    pub instance_id: Option<InstanceId>,
    /// The machine whose local sandbox it uses.
    pub machine: Option<String>,
    /// Since when nobody watches it, in milliseconds since 1970. Derived, and none while somebody does or once it ended.
    pub detached_since: Option<u64>,
    /// How long it may go on without a viewer, in milliseconds. None: for ever.
    pub detached_ttl: Option<u64>,
    /// What happens when the last viewer leaves.
    pub on_disconnect: OnDisconnect,
    /// Whether and why it is to stop.
    pub cancel_requested: Option<Cancel>,
    /// How often it was claimed: the fencing token. 0 is never seen, since accept claims.
    pub driver_epoch: u64,
    /// Who drives it now, if anybody does.
    pub driver: Option<Driver>,
    /// The number of events in its log.
    pub tail: u64,
    /// Whether its transcript is complete and final.
    pub sealed: bool,
    /// The session in the agent's own words, by which it can be resumed.
    pub agent_session: Option<String>,
    /// How to launch it.
    #[serde(skip)]
    pub spec: LaunchSpec,
    /// The secret of its exit sentinel.
    #[serde(skip)]
    pub exit_secret: ExitSecret,
    /// Where the driver is in the journal.
    #[serde(skip)]
    pub cursor: Option<Cursor>,
}

/// Why a run failed or was aborted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunError {
    /// A code of [`ErrorCode`], or the agent's own.
    pub code: String,
    /// For people.
    pub message: String,
}

impl RunError {
    /// An error with one of Outlast's codes.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        RunError { code: code.as_str().to_owned(), message: message.into() }
    }
}

/// A durable wish to stop a run. Never withdrawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancel {
    /// Whose wish it was.
    pub reason: CancelReason,
    /// When it was recorded, in milliseconds since 1970.
    pub at: u64,
}

/// Who holds the claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Driver {
    /// The process.
    pub owner: OwnerId,
    /// When it got the claim, in milliseconds since 1970.
    pub since: u64,
    /// How much longer its lease runs unless renewed, in milliseconds.
    pub lease_remaining: u64,
}

/// Proof of a claim. Every authoritative write of a driver names it and commits only while it is current.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimToken {
    /// The run.
    pub run_id: RunId,
    /// Who holds it.
    pub owner: OwnerId,
    /// The run's epoch since this claim.
    pub epoch: u64,
    /// Drawn for this claim.
    pub nonce: Nonce,
}

/// Where a driver is in the journal, stored with every append so that a successor goes on from there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// The journal's byte at which the first line not yet in the log begins.
    pub journal: u64,
    /// The translator's state, in a form that only the agent's kind reads.
    pub state: serde_json::Value,
    /// The version of that form.
    pub version: u32,
    /// How many ids the translator has drawn.
    pub ids: u64,
    /// The log's event from which a fold yields the messages that are still open.
    pub fold_from: u64,
}

/// What one model used, in tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens read, cached ones included.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Both.
    pub total_tokens: u64,
    /// Tokens read from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<u64>,
    /// Tokens spent on reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
}
