//! May this claim be granted?

use crate::run::{CancelReason, Purpose, Status};
use crate::{ErrorCode, Nonce, OwnerId, RunId};

/// A lease as the store sees it now, on its own clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Who has it.
    pub owner: OwnerId,
    /// What the grant was given.
    pub nonce: Nonce,
    /// How much longer it runs, in milliseconds; 0 where it has run out, was released, or its owner is provably dead.
    pub remaining: u64,
}

/// What the store knows of the run, within the transaction that would grant the claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimFacts {
    /// The run's status.
    pub status: Status,
    /// Whether somebody wants it to stop.
    pub cancel: Option<CancelReason>,
    /// The latest lease.
    pub lease: Option<Lease>,
    /// For how many milliseconds nobody has watched; none while somebody does.
    pub detached_for: Option<u64>,
}

/// Who asks for a claim, and on what condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimAsk<'a> {
    /// By whom it would be held.
    pub owner: &'a OwnerId,
    /// Drawn for this request, so that the same request again is known.
    pub nonce: &'a Nonce,
    /// What for.
    pub purpose: Purpose,
    /// Only where nobody has watched for at least so many milliseconds.
    pub detached_for: Option<u64>,
}

/// How a claim is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// Epoch + 1, in the transaction in which the facts were read.
    New,
    /// The same request was granted before and nobody has claimed since: the answer was lost, or comes twice. The epoch
    /// stays, the lease begins anew.
    Again,
}

/// Why a claim is not granted. Nothing was written and the epoch did not move.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClaimRefusal {
    /// `run_not_found`.
    #[error("there is no run {0:?}")]
    RunNotFound(RunId),
    /// `terminal_run`.
    #[error("the run has ended ({0})")]
    TerminalRun(Status),
    /// `interrupted_run`.
    #[error("the run waits for a person and is driven by nobody")]
    InterruptedRun,
    /// `cancelled`: only its end may still be claimed.
    #[error("the run was cancelled, so it is only brought to its end")]
    Cancelled(CancelReason),
    /// `superseded`: what the claimant had seen is no longer so.
    #[error("somebody watches the run again, or has until a moment ago")]
    Superseded,
    /// `claim_held`.
    #[error("the run is driven by {owner}, whose lease runs for {remaining} ms unless renewed")]
    ClaimHeld {
        /// By whom.
        owner: OwnerId,
        /// For how many more milliseconds, unless renewed.
        remaining: u64,
    },
}

impl ClaimRefusal {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            ClaimRefusal::RunNotFound(_) => ErrorCode::RunNotFound,
            ClaimRefusal::TerminalRun(_) => ErrorCode::TerminalRun,
            ClaimRefusal::InterruptedRun => ErrorCode::InterruptedRun,
            ClaimRefusal::Cancelled(_) => ErrorCode::Cancelled,
            ClaimRefusal::Superseded => ErrorCode::Superseded,
            ClaimRefusal::ClaimHeld { .. } => ErrorCode::ClaimHeld,
        }
    }
}

/// Decides.
pub fn claim(facts: &ClaimFacts, ask: &ClaimAsk<'_>) -> Result<Grant, ClaimRefusal> {
    if facts.status.is_terminal() {
        return Err(ClaimRefusal::TerminalRun(facts.status));
    }
    if let Some(lease) = &facts.lease
        && (&lease.owner, &lease.nonce) == (ask.owner, ask.nonce)
    {
        // Before everything that may have come since: what was granted was granted.
        return Ok(Grant::Again);
    }
    if facts.status == Status::Interrupted && ask.purpose == Purpose::Drive {
        return Err(ClaimRefusal::InterruptedRun);
    }
    if let (Some(reason), Purpose::Drive) = (facts.cancel, ask.purpose) {
        return Err(ClaimRefusal::Cancelled(reason));
    }
    if let Some(lease) = facts.lease.as_ref().filter(|lease| lease.remaining > 0) {
        return Err(ClaimRefusal::ClaimHeld { owner: lease.owner.clone(), remaining: lease.remaining });
    }
    match ask.detached_for {
        Some(least) if facts.detached_for.is_none_or(|time| time < least) => Err(ClaimRefusal::Superseded),
        _ => Ok(Grant::New),
    }
}

/// Why a fenced write changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fenced {
    /// `claim_lost`: the writer stops for good.
    #[error("the claim on run {run_id:?} was lost: held epoch {held_epoch}, current epoch {current_epoch}")]
    ClaimLost {
        /// The run.
        run_id: RunId,
        /// The writer's epoch.
        held_epoch: u64,
        /// The run's epoch.
        current_epoch: u64,
    },
    /// `terminal_run`.
    #[error("the run has ended ({0})")]
    TerminalRun(Status),
    /// `run_not_found`.
    #[error("there is no run {0:?}")]
    RunNotFound(RunId),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(text: &str) -> OwnerId {
        OwnerId::new(text).expect("id")
    }

    fn facts(status: Status, cancel: Option<CancelReason>, remaining: Option<u64>) -> ClaimFacts {
        let nonce = Nonce::from_stored("theirs");
        let lease = remaining.map(|remaining| Lease { owner: owner("o"), nonce, remaining });
        ClaimFacts { status, cancel, lease, detached_for: Some(7) }
    }

    fn word(answer: Result<Grant, ClaimRefusal>) -> &'static str {
        match answer {
            Ok(Grant::New) => "granted",
            Ok(Grant::Again) => "again",
            Err(ClaimRefusal::TerminalRun(_)) => "terminal",
            Err(ClaimRefusal::InterruptedRun) => "interrupted",
            Err(ClaimRefusal::Cancelled(_)) => "cancelled",
            Err(ClaimRefusal::Superseded) => "superseded",
            Err(ClaimRefusal::ClaimHeld { remaining: 5, .. }) => "held",
            Err(_) => "other",
        }
    }

    #[test]
    fn every_combination() {
        let (me, nonce) = (owner("me"), Nonce::from_stored("mine"));
        for status in Status::ALL {
            for cancel in [None, Some(CancelReason::User), Some(CancelReason::Ttl)] {
                for remaining in [None, Some(0), Some(5)] {
                    for purpose in Purpose::ALL {
                        for detached_for in [None, Some(7), Some(8)] {
                            let ask = ClaimAsk { owner: &me, nonce: &nonce, purpose: *purpose, detached_for };
                            let expected = match (status, purpose) {
                                (Status::Completed | Status::Failed | Status::Aborted, _) => "terminal",
                                (Status::Interrupted, Purpose::Drive) => "interrupted",
                                (_, Purpose::Drive) if cancel.is_some() => "cancelled",
                                _ if remaining == Some(5) => "held",
                                _ if detached_for == Some(8) => "superseded",
                                _ => "granted",
                            };
                            let got = word(claim(&facts(*status, cancel, remaining), &ask));
                            assert_eq!(got, expected, "{status} {cancel:?} {remaining:?} {ask:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_watched_run_is_detached_for_no_time() {
        let (me, nonce) = (owner("me"), Nonce::from_stored("mine"));
        let ask =
            |detached_for| ClaimAsk { owner: &me, nonce: &nonce, purpose: Purpose::Drive, detached_for };
        let watched = ClaimFacts { detached_for: None, ..facts(Status::Running, None, None) };
        assert_eq!(word(claim(&watched, &ask(None))), "granted");
        assert_eq!(word(claim(&watched, &ask(Some(0)))), "superseded");
    }

    #[test]
    fn the_same_request_again() {
        let (mine, theirs) = (Nonce::from_stored("mine"), Nonce::from_stored("theirs"));
        let cancel = Some(CancelReason::User);
        for (who, nonce, status, expected) in [
            // Also once its lease has run out, the run was cancelled or is watched: what was granted was granted.
            ("o", &theirs, Status::Running, "again"),
            ("o", &mine, Status::Running, "cancelled"),
            ("me", &theirs, Status::Running, "cancelled"),
            ("o", &theirs, Status::Completed, "terminal"),
        ] {
            for remaining in [0, 5] {
                let owner = owner(who);
                let ask = ClaimAsk { owner: &owner, nonce, purpose: Purpose::Drive, detached_for: Some(99) };
                let got = word(claim(&facts(status, cancel, Some(remaining)), &ask));
                assert_eq!(got, expected, "{who} {nonce:?} {status} {remaining}");
            }
        }
    }
}
