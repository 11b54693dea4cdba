//! The stable codes of errors, on the wire and in every `RUN_ERROR`.

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident => $text:literal,)*) => {
        /// A stable code: never renamed, never given another meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum ErrorCode {
            $($(#[$doc])* $variant,)*
        }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$variant,)*];

            /// The code as it is on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(ErrorCode::$variant => $text,)*
                }
            }
        }
    };
}

codes! {
    /// A request that needs a run id names none.
    RunIdRequired => "run_id_required",
    /// No such run.
    RunNotFound => "run_not_found",
    /// The run id is taken by another request.
    RunIdConflict => "run_id_conflict",
    /// The thread, or the workspace, has a live run.
    ThreadBusy => "thread_busy",
    /// The offset was not minted by this service.
    OffsetMalformed => "offset_malformed",
    /// The offset lies beyond the tail.
    OffsetAhead => "offset_ahead",
    /// The events behind the offset have aged out.
    CursorExpired => "cursor_expired",
    /// Another host holds the claim.
    ClaimHeld => "claim_held",
    /// The claim was held and is held no more.
    ClaimLost => "claim_lost",
    /// The run has ended.
    TerminalRun => "terminal_run",
    /// The run waits for a person.
    InterruptedRun => "interrupted_run",
    /// The run was cancelled, so nothing may drive it.
    Cancelled => "cancelled",
    /// Somebody else was first.
    Superseded => "superseded",
    /// The journal could not be read in time.
    JournalTimeout => "journal_timeout",
    /// The sandbox does not exist any more.
    SandboxGone => "sandbox_gone",
    /// The sandbox cannot be reached from here.
    SandboxUnreachable => "sandbox_unreachable",
    /// The run has ended, and its sandbox could not be destroyed yet.
    SandboxReclaimFailed => "sandbox_reclaim_failed",
    /// The agent could not be started.
    LaunchFailed => "launch_failed",
    /// A variable that the agent needs is not set where it would be launched.
    LaunchEnvMissing => "launch_env_missing",
    /// The agent and its shim are dead and left no exit behind.
    AgentLost => "agent_lost",
    /// The agent printed more than it may, or more than the disk holds.
    OutputLimit => "output_limit",
    /// A replay of the journal differs from the stored log.
    ReplayDiverged => "replay_diverged",
    /// The run was stopped.
    Aborted => "aborted",
    /// The run outlived its time without a viewer.
    Expired => "expired",
    /// Bringing the run to its end took too long, again and again.
    BudgetExceeded => "budget_exceeded",
    /// Not authorised.
    Unauthorized => "unauthorized",
    /// The request makes no sense.
    InvalidRequest => "invalid_request",
    /// The provider cannot do that.
    UnsupportedCapability => "unsupported_capability",
    /// The store is full, slow, away or damaged.
    StoreUnavailable => "store_unavailable",
    /// There is no such route, or nothing of that name.
    NotFound => "not_found",
    /// The route does not take this method.
    MethodNotAllowed => "method_not_allowed",
    /// The request comes from where none may come from.
    Forbidden => "forbidden",
    /// The request is larger than the server takes.
    RequestTooLarge => "request_too_large",
    /// The host drives as many runs as it may.
    TooManyRuns => "too_many_runs",
    /// The server has no room for another viewer, or is about to end. Another try, or another host, may succeed.
    Unavailable => "unavailable",
    /// A defect of Outlast.
    Internal => "internal",
    /// No such session.
    SessionNotFound => "session_not_found",
    /// The session of the thread was deleted.
    SessionDeleted => "session_deleted",
    /// Somebody else collects or deletes the session.
    SessionHeld => "session_held",
    /// What belongs to the thread cannot be read from object storage.
    BodyUnavailable => "body_unavailable",
    /// There is no such snapshot, or it cannot be read.
    SnapshotUnavailable => "snapshot_unavailable",
    /// The agent itself reported a failure or ended with another status than 0.
    AgentFailed => "agent_failed",
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serde_and_text_agree() {
        for code in ErrorCode::ALL {
            assert_eq!(serde_json::to_string(code).expect("json"), format!("\"{code}\""));
        }
    }
}
