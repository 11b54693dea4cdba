//! Is this wish to stop recorded?

use crate::run::Status;

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

/// Decides, on facts of the transaction that would record it. `least` is the condition that nobody has watched for so
/// long, in milliseconds, and `detached_for` what is so: a person's Stop holds whoever watches; a cancel for want of
/// viewers only while nobody does, so a viewer who comes back in time wins.
pub fn cancel(
    status: Status,
    requested: bool,
    least: Option<u64>,
    detached_for: Option<u64>,
) -> CancelDecision {
    if status.is_terminal() {
        return CancelDecision::Terminal;
    }
    if requested {
        return CancelDecision::AlreadyRequested;
    }
    match least {
        Some(least) if detached_for.is_none_or(|time| time < least) => CancelDecision::Watched,
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
                for least in [None, Some(0), Some(5)] {
                    for detached_for in [None, Some(4), Some(5)] {
                        let expected = match (status.is_terminal(), requested, least, detached_for) {
                            (true, ..) => CancelDecision::Terminal,
                            (_, true, ..) => CancelDecision::AlreadyRequested,
                            (_, _, None, _) | (_, _, Some(0), Some(_)) | (_, _, Some(5), Some(5)) => {
                                CancelDecision::Record
                            }
                            _ => CancelDecision::Watched,
                        };
                        let got = cancel(*status, requested, least, detached_for);
                        assert_eq!(got, expected, "{status} {requested} {least:?} {detached_for:?}");
                    }
                }
            }
        }
    }
}
