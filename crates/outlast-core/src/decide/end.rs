//! How does this run end?

use crate::ErrorCode;
use crate::run::{CancelReason, EndReason, RunError, Status};

/// The end that a driver proposes, from what it saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The agent ended its work with exit status 0 and reported no failure.
    Completed,
    /// The agent failed, or Outlast could not go on with it.
    Failed {
        /// The code for clients: one of Outlast's, or the agent's own.
        error: RunError,
        /// Why, for the record.
        reason: EndReason,
    },
    /// The agent was stopped because of a cancel.
    Stopped {
        /// Whether it is certain that no process of it lives.
        verified: bool,
    },
}

/// What the record will say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndVerdict {
    /// The terminal status.
    pub status: Status,
    /// Why, for clients. None where the run completed.
    pub error: Option<RunError>,
    /// Why, for the record.
    pub reason: EndReason,
}

/// Decides. A user's Stop that is on the record makes every end an abort, whatever the agent did meanwhile; where the
/// time limit stopped the run, an agent that had ended by itself keeps its own end.
pub fn end(cancel: Option<CancelReason>, ending: &Ending) -> EndVerdict {
    let aborted = |code, message: &str, reason| EndVerdict {
        status: Status::Aborted,
        error: Some(RunError::new(code, message)),
        reason,
    };
    let unverified = matches!(ending, Ending::Stopped { verified: false });
    match (cancel, ending) {
        (Some(CancelReason::Ttl), Ending::Stopped { .. }) => aborted(
            ErrorCode::Expired,
            "the run went on without a viewer for longer than it may",
            if unverified { EndReason::CancelledUnverified } else { EndReason::Expired },
        ),
        (Some(CancelReason::User | CancelReason::Disconnect), _) | (None, Ending::Stopped { .. }) => {
            let message = match (cancel, unverified) {
                (_, true) => "the run was cancelled; it could not be verified that all its processes ended",
                (Some(CancelReason::Disconnect), _) => "the run was cancelled because its last viewer left",
                _ => "the run was cancelled",
            };
            let reason = if unverified { EndReason::CancelledUnverified } else { EndReason::Cancelled };
            aborted(ErrorCode::Aborted, message, reason)
        }
        (Some(CancelReason::Ttl) | None, Ending::Completed) => {
            EndVerdict { status: Status::Completed, error: None, reason: EndReason::Exited }
        }
        (Some(CancelReason::Ttl) | None, Ending::Failed { error, reason }) => {
            EndVerdict { status: Status::Failed, error: Some(error.clone()), reason: *reason }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination() {
        let failed = Ending::Failed {
            error: RunError::new(ErrorCode::AgentFailed, "x"),
            reason: EndReason::AgentFailed,
        };
        let endings = [
            Ending::Completed,
            failed,
            Ending::Stopped { verified: true },
            Ending::Stopped { verified: false },
        ];
        for ending in &endings {
            for cancel in
                [None, Some(CancelReason::User), Some(CancelReason::Disconnect), Some(CancelReason::Ttl)]
            {
                let verdict = end(cancel, ending);
                let code = verdict.error.as_ref().map(|error| error.code.as_str());
                let expected = match (cancel, ending) {
                    (Some(CancelReason::User | CancelReason::Disconnect), _) => {
                        (Status::Aborted, Some("aborted"))
                    }
                    (None, Ending::Stopped { .. }) => (Status::Aborted, Some("aborted")),
                    (Some(CancelReason::Ttl), Ending::Stopped { .. }) => (Status::Aborted, Some("expired")),
                    (_, Ending::Completed) => (Status::Completed, None),
                    (_, Ending::Failed { .. }) => (Status::Failed, Some("agent_failed")),
                };
                assert_eq!((verdict.status, code), expected, "{cancel:?} {ending:?}");
                let unverified = *ending == Ending::Stopped { verified: false };
                assert_eq!(verdict.reason == EndReason::CancelledUnverified, unverified);
            }
        }
    }
}
