//! May this claim be granted, and is this claim still current?

use crate::run::{CancelReason, ClaimToken, Purpose, Status};
use crate::{Nonce, OwnerId, RunId};

/// A lease as the store sees it now, on its own clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Who has it.
    pub owner: OwnerId,
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
    /// `claim_held`.
    #[error("the run is driven by {owner}, whose lease runs for {remaining} ms unless renewed")]
    ClaimHeld {
        /// By whom.
        owner: OwnerId,
        /// For how many more milliseconds, unless renewed.
        remaining: u64,
    },
}

/// Decides. A grant means: epoch + 1 and a fresh nonce, in the transaction in which the facts were read.
pub fn claim(facts: &ClaimFacts, purpose: Purpose) -> Result<(), ClaimRefusal> {
    if facts.status.is_terminal() {
        return Err(ClaimRefusal::TerminalRun(facts.status));
    }
    if facts.status == Status::Interrupted && purpose == Purpose::Drive {
        return Err(ClaimRefusal::InterruptedRun);
    }
    if let (Some(reason), Purpose::Drive) = (facts.cancel, purpose) {
        return Err(ClaimRefusal::Cancelled(reason));
    }
    match &facts.lease {
        Some(lease) if lease.remaining > 0 => {
            Err(ClaimRefusal::ClaimHeld { owner: lease.owner.clone(), remaining: lease.remaining })
        }
        _ => Ok(()),
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

/// Whether a writer's token is current. A lease that has merely run out is no reason to refuse: as long as nobody else
/// has claimed, there is one writer.
pub fn fence(token: &ClaimToken, status: Status, epoch: u64, nonce: Option<&Nonce>) -> Result<(), Fenced> {
    if token.epoch != epoch || nonce != Some(&token.nonce) {
        return Err(Fenced::ClaimLost {
            run_id: token.run_id.clone(),
            held_epoch: token.epoch,
            current_epoch: epoch,
        });
    }
    if status.is_terminal() {
        return Err(Fenced::TerminalRun(status));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(status: Status, cancel: Option<CancelReason>, remaining: Option<u64>) -> ClaimFacts {
        let owner = OwnerId::new("o").expect("id");
        ClaimFacts {
            status,
            cancel,
            lease: remaining.map(|remaining| Lease { owner: owner.clone(), remaining }),
        }
    }

    #[test]
    fn every_combination() {
        for status in Status::ALL {
            for cancel in [None, Some(CancelReason::User), Some(CancelReason::Ttl)] {
                for remaining in [None, Some(0), Some(5)] {
                    for purpose in Purpose::ALL {
                        let granted = claim(&facts(*status, cancel, remaining), *purpose);
                        let expected = match (status, purpose) {
                            (Status::Completed | Status::Failed | Status::Aborted, _) => "terminal",
                            (Status::Interrupted, Purpose::Drive) => "interrupted",
                            (_, Purpose::Drive) if cancel.is_some() => "cancelled",
                            _ if remaining == Some(5) => "held",
                            _ => "granted",
                        };
                        let got = match granted {
                            Ok(()) => "granted",
                            Err(ClaimRefusal::TerminalRun(_)) => "terminal",
                            Err(ClaimRefusal::InterruptedRun) => "interrupted",
                            Err(ClaimRefusal::Cancelled(_)) => "cancelled",
                            Err(ClaimRefusal::ClaimHeld { remaining: 5, .. }) => "held",
                            Err(_) => "other",
                        };
                        assert_eq!(got, expected, "{status} {cancel:?} {remaining:?} {purpose}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_fence_wants_epoch_and_nonce() {
        let token = ClaimToken {
            run_id: RunId::new("r").expect("id"),
            owner: OwnerId::new("o").expect("id"),
            epoch: 3,
            nonce: Nonce::from_stored("n"),
        };
        let nonce = Nonce::from_stored("n");
        let other = Nonce::from_stored("m");
        assert_eq!(fence(&token, Status::Running, 3, Some(&nonce)), Ok(()));
        assert_eq!(
            fence(&token, Status::Completed, 3, Some(&nonce)),
            Err(Fenced::TerminalRun(Status::Completed))
        );
        for (epoch, nonce) in [(4, Some(&nonce)), (3, Some(&other)), (3, None), (2, Some(&nonce))] {
            assert!(matches!(
                fence(&token, Status::Running, epoch, nonce),
                Err(Fenced::ClaimLost { held_epoch: 3, current_epoch, .. }) if current_epoch == epoch
            ));
        }
    }
}
