//! Is this wish to stop recorded?

use crate::run::{CancelReason, Status};

/// What becomes of a wish to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelDecision {
    /// It is recorded.
    Record,
    /// Another wish was recorded before, and stays.
    AlreadyRequested,
    /// The run has ended.
    Terminal,
    /// The wish was for want of viewers, and there is one.
    Watched,
}

/// Decides, on facts of the transaction that would record it. A person's Stop holds whoever watches; a cancel for want
/// of viewers only while nobody does, so a viewer who comes back in time wins.
pub fn cancel(status: Status, requested: bool, reason: CancelReason, watched: bool) -> CancelDecision {
    if status.is_terminal() {
        return CancelDecision::Terminal;
    }
    if requested {
        return CancelDecision::AlreadyRequested;
    }
    match reason {
        CancelReason::Disconnect | CancelReason::Ttl if watched => CancelDecision::Watched,
        _ => CancelDecision::Record,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination() {
        for status in Status::ALL {
            for requested in [false, true] {
                for reason in CancelReason::ALL {
                    for watched in [false, true] {
                        let expected = match (status.is_terminal(), requested, reason, watched) {
                            (true, ..) => CancelDecision::Terminal,
                            (_, true, ..) => CancelDecision::AlreadyRequested,
                            (.., CancelReason::User, _) | (.., false) => CancelDecision::Record,
                            (.., true) => CancelDecision::Watched,
                        };
                        let got = cancel(*status, requested, *reason, watched);
                        assert_eq!(got, expected, "{status} {requested} {reason} {watched}");
                    }
                }
            }
        }
    }
}
