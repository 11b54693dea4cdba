//! What does a sweep do with this run?

use crate::run::{CancelReason, Status};

/// How often a run whose finalising makes no progress is left to another attempt before it is ended without its rest.
pub const STALLS: u32 = 3;

/// Who reaches the run's sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// This host.
    Here,
    /// Another host, which is alive.
    Elsewhere,
    /// No host that is known to be alive.
    Nobody,
}

/// What a sweep knows of a run. Times in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SweepFacts {
    /// The run's status.
    pub status: Status,
    /// For how long nobody has watched it; none while somebody does.
    pub detached_for: Option<u64>,
    /// For how long it may go on like that; none: for ever.
    pub ttl: Option<u64>,
    /// For how long a run may wait for a person whom nobody sees; none: for ever.
    pub interrupted_ttl: Option<u64>,
    /// Whether somebody wants it to stop.
    pub cancel: Option<CancelReason>,
    /// Whether a host drives it.
    pub driven: bool,
    /// Who reaches its sandbox.
    pub reach: Reach,
}

/// What the sweep does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SweepStep {
    /// Nothing: it is none of the sweep's business.
    Leave,
    /// Ask the journal, out of band, whether the agent has ended.
    Probe,
    /// Its time is up: record the cancel, on the condition that nobody watches, and bring it to its end.
    Expire,
    /// It is to stop, and nobody is about to stop it: bring it to its end.
    End,
}

/// Decides. The bound of a time counts as reached.
pub fn sweep(facts: &SweepFacts) -> SweepStep {
    let over = |ttl: Option<u64>| matches!((facts.detached_for, ttl), (Some(time), Some(ttl)) if time >= ttl);
    match facts.status {
        Status::Completed | Status::Failed | Status::Aborted => SweepStep::Leave,
        _ if facts.cancel.is_some() => match facts.reach {
            // Its driver, or a host that reaches it, ends it.
            _ if facts.driven => SweepStep::Leave,
            Reach::Elsewhere => SweepStep::Leave,
            Reach::Here => SweepStep::End,
            // Where a person's Stop waits for a machine that may come back, so does the sweep, for the same time.
            Reach::Nobody if facts.cancel == Some(CancelReason::Ttl) || over(facts.ttl) => SweepStep::End,
            Reach::Nobody => SweepStep::Leave,
        },
        Status::Interrupted if over(facts.interrupted_ttl) => SweepStep::Expire,
        Status::Interrupted => SweepStep::Leave,
        Status::Running if over(facts.ttl) => SweepStep::Expire,
        Status::Running if facts.detached_for.is_some() && facts.reach == Reach::Here => SweepStep::Probe,
        Status::Running => SweepStep::Leave,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNNING: SweepFacts = SweepFacts {
        status: Status::Running,
        detached_for: Some(100),
        ttl: Some(101),
        interrupted_ttl: None,
        cancel: None,
        driven: false,
        reach: Reach::Here,
    };

    #[test]
    fn every_combination() {
        let times = [None, Some(100), Some(101)];
        for status in Status::ALL {
            for detached_for in [None, Some(100)] {
                for (ttl, interrupted_ttl) in times.iter().flat_map(|ttl| times.map(|other| (*ttl, other))) {
                    for cancel in [None, Some(CancelReason::User), Some(CancelReason::Ttl)] {
                        for driven in [false, true] {
                            for reach in [Reach::Here, Reach::Elsewhere, Reach::Nobody] {
                                let facts = SweepFacts {
                                    status: *status,
                                    detached_for,
                                    ttl,
                                    interrupted_ttl,
                                    cancel,
                                    driven,
                                    reach,
                                };
                                assert_eq!(sweep(&facts), expected(&facts), "{facts:?}");
                            }
                        }
                    }
                }
            }
        }
    }

    /// The same, said the other way round.
    fn expected(facts: &SweepFacts) -> SweepStep {
        let detached = facts.detached_for.is_some();
        let overdue = detached && facts.ttl == Some(100);
        if facts.status.is_terminal() {
            SweepStep::Leave
        } else if let Some(reason) = facts.cancel {
            let lost = facts.reach == Reach::Nobody && (reason == CancelReason::Ttl || overdue);
            if !facts.driven && (facts.reach == Reach::Here || lost) {
                SweepStep::End
            } else {
                SweepStep::Leave
            }
        } else if facts.status == Status::Interrupted {
            if detached && facts.interrupted_ttl == Some(100) { SweepStep::Expire } else { SweepStep::Leave }
        } else if overdue {
            SweepStep::Expire
        } else if detached && facts.reach == Reach::Here {
            SweepStep::Probe
        } else {
            SweepStep::Leave
        }
    }

    #[test]
    fn the_cutoff_is_inclusive() {
        let at = |detached_for| sweep(&SweepFacts { detached_for: Some(detached_for), ..RUNNING });
        assert_eq!([at(100), at(101), at(102)], [SweepStep::Probe, SweepStep::Expire, SweepStep::Expire]);
    }
}
