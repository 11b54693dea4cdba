//! May this sandbox be destroyed now?

use crate::run::EndReason;
use crate::{OwnerId, RunId};

/// The longest time between two attempts to destroy a sandbox, in milliseconds.
const LONGEST_RETRY: u64 = 3_600_000;
/// The shortest.
const FIRST_RETRY: u64 = 10_000;

/// What the store knows of the instance, within the transaction that would begin to destroy it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReclaimFacts {
    /// Whether it is known to be gone.
    pub gone: bool,
    /// In how many milliseconds it is to be destroyed; 0 where it is due; none where nobody has asked for it yet.
    pub due_in: Option<u64>,
    /// A live run that uses it.
    pub user: Option<RunId>,
    /// Who destroys it at the moment, and for how many milliseconds nobody else may.
    pub holder: Option<(OwnerId, u64)>,
}

/// Why a sandbox is not destroyed. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReclaimRefusal {
    /// It is gone already.
    #[error("the sandbox is gone")]
    Gone,
    /// A live run uses it.
    #[error("the sandbox is in use by run {0:?}")]
    InUse(RunId),
    /// Its lifecycle keeps it: for so many more milliseconds, or until somebody removes it.
    #[error("the sandbox is kept")]
    Kept(Option<u64>),
    /// Somebody else destroys it.
    #[error("the sandbox is being destroyed by {owner}")]
    Held {
        /// By whom.
        owner: OwnerId,
        /// For how many more milliseconds it is theirs.
        remaining: u64,
    },
}

/// Decides. `forced` is a person's wish, which does not wait for the sandbox's time; a live run it respects as well.
pub fn reclaim(facts: &ReclaimFacts, owner: &OwnerId, forced: bool) -> Result<(), ReclaimRefusal> {
    if facts.gone {
        return Err(ReclaimRefusal::Gone);
    }
    if let Some(run) = &facts.user {
        return Err(ReclaimRefusal::InUse(run.clone()));
    }
    if let Some((holder, remaining)) = &facts.holder
        && holder != owner
        && *remaining > 0
    {
        return Err(ReclaimRefusal::Held { owner: holder.clone(), remaining: *remaining });
    }
    match facts.due_in {
        Some(0) => Ok(()),
        _ if forced => Ok(()),
        due_in => Err(ReclaimRefusal::Kept(due_in)),
    }
}

/// In how many milliseconds the sandbox of a run that ends like this is to be destroyed; none: its lifecycle keeps it.
/// `keep_alive` is that lifecycle's.
pub fn reclaim_after(reason: EndReason, keep_alive: Option<u64>) -> Option<u64> {
    match reason {
        // Processes of the agent may live in it: destroying it is the only way that is left to stop them.
        EndReason::CancelledUnverified => Some(0),
        // There is nothing in it that anybody could go on with.
        EndReason::SandboxGone | EndReason::SandboxUnreachable => Some(0),
        _ => keep_alive,
    }
}

/// How many milliseconds to wait after so many attempts have failed in a row.
pub fn reclaim_retry(failed: u32) -> u64 {
    let doublings = failed.saturating_sub(1).min(16);
    (FIRST_RETRY << doublings).min(LONGEST_RETRY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(text: &str) -> OwnerId {
        OwnerId::new(text).expect("id")
    }

    #[test]
    fn every_combination() {
        let run = RunId::new("r").expect("id");
        for gone in [false, true] {
            for due_in in [None, Some(0), Some(5)] {
                for user in [None, Some(run.clone())] {
                    for holder in [None, Some(("me", 9)), Some(("other", 0)), Some(("other", 9))] {
                        for forced in [false, true] {
                            let facts = ReclaimFacts {
                                gone,
                                due_in,
                                user: user.clone(),
                                holder: holder.map(|(name, remaining)| (owner(name), remaining)),
                            };
                            let expected = if gone {
                                "gone"
                            } else if user.is_some() {
                                "used"
                            } else if holder == Some(("other", 9)) {
                                "held"
                            } else if forced || due_in == Some(0) {
                                "granted"
                            } else {
                                "kept"
                            };
                            let got = match reclaim(&facts, &owner("me"), forced) {
                                Ok(()) => "granted",
                                Err(ReclaimRefusal::Gone) => "gone",
                                Err(ReclaimRefusal::InUse(_)) => "used",
                                Err(ReclaimRefusal::Held { remaining: 9, .. }) => "held",
                                Err(ReclaimRefusal::Kept(time)) if time == due_in => "kept",
                                Err(_) => "other",
                            };
                            assert_eq!(got, expected, "{facts:?} {forced}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn what_an_end_means_for_the_sandbox() {
        for reason in EndReason::ALL {
            let at_once = matches!(
                reason,
                EndReason::CancelledUnverified | EndReason::SandboxGone | EndReason::SandboxUnreachable
            );
            for keep_alive in [None, Some(0), Some(7)] {
                let expected = if at_once { Some(0) } else { keep_alive };
                assert_eq!(reclaim_after(*reason, keep_alive), expected, "{reason}");
            }
        }
    }

    #[test]
    fn retries_back_off_and_never_end() {
        let times: Vec<u64> = (1..=12).map(reclaim_retry).collect();
        assert_eq!(times[..4], [10_000, 20_000, 40_000, 80_000]);
        assert!(times.is_sorted());
        assert_eq!((times[11], reclaim_retry(u32::MAX)), (LONGEST_RETRY, LONGEST_RETRY));
    }
}
