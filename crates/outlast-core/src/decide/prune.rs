//! May a run's files be deleted from a sandbox that still lives?
//!
//! The journal is the only copy of what a successor needs to go on with a run. So nothing here looks for a reason to
//! keep: everything that is not proven to be useless is kept.

use serde::{Deserialize, Serialize};

/// What the store says of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneRecord {
    /// It has ended.
    Ended {
        /// Whether its transcript is complete and final.
        sealed: bool,
        /// How many milliseconds ago, on the store's clock; none where that cannot be told.
        ended_for: Option<u64>,
    },
    /// It has not ended, a run that waits for a person included: that one goes on from its journal.
    Live,
    /// There is no such run.
    Unknown,
    /// It could not be asked, or not for sure.
    Failed,
}

/// What is known of the age of a run's files. Times in milliseconds, all on the sandbox's own clock: one that is off
/// moves both sides alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilesAge {
    /// The sandbox tells no ages, or not what time it is.
    Unavailable,
    /// It tells those of other files, and not of each of these.
    MissingEntry,
    /// All are known.
    Known {
        /// When the newest file was written last.
        newest: u64,
        /// What time it is.
        now: u64,
    },
}

/// Who uses a run's files at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunUse {
    /// Nobody.
    Free,
    /// A shim: it holds the run's lock.
    Shim,
    /// A reader: it has the journal open.
    Reader,
}

/// Everything that the decision is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PruneFacts {
    /// Whether the files' names say of which run they are. One that does not decode may be of any run.
    pub decoded: bool,
    /// How many runs' files may still be deleted in this sweep.
    pub deletes_left: usize,
    /// What the store says.
    pub record: PruneRecord,
    /// How old the files are.
    pub age: FilesAge,
    /// Who uses them.
    pub in_use: RunUse,
}

/// How long files are kept that might go. Milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PruneTimes {
    /// How old the files of a run must be that the store does not know.
    pub orphan_ttl: u64,
    /// How long ago a run must have ended.
    pub keep_journals: u64,
}

/// Why files are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeepReason {
    /// The name does not say of which run it is.
    UndecodableName,
    /// The sweep has deleted as much as it may; the next one goes on.
    MaxDeletes,
    /// The store could not be asked.
    StoreError,
    /// The store does not know the run, and the sandbox tells no ages.
    AgeGateUnavailable,
    /// The store does not know the run, and the age of one of its files cannot be told.
    AgeGateMissingEntry,
    /// The store does not know the run, and a file of it is young.
    OrphanTooRecent,
    /// The run has not ended.
    NonTerminal,
    /// The run has ended, and its transcript is not sealed.
    Unsealed,
    /// A shim lives.
    Live,
    /// Somebody reads the journal.
    BeingRead,
    /// The run has ended a short while ago, and journals are to be kept for longer.
    Kept,
    /// The deletion was tried and failed.
    DeleteFailed,
}

impl KeepReason {
    /// Every reason.
    pub const ALL: [KeepReason; 12] = [
        KeepReason::UndecodableName,
        KeepReason::MaxDeletes,
        KeepReason::StoreError,
        KeepReason::AgeGateUnavailable,
        KeepReason::AgeGateMissingEntry,
        KeepReason::OrphanTooRecent,
        KeepReason::NonTerminal,
        KeepReason::Unsealed,
        KeepReason::Live,
        KeepReason::BeingRead,
        KeepReason::Kept,
        KeepReason::DeleteFailed,
    ];

    /// The printed form.
    pub fn as_str(self) -> &'static str {
        match self {
            KeepReason::UndecodableName => "undecodable-name",
            KeepReason::MaxDeletes => "max-deletes",
            KeepReason::StoreError => "store-error",
            KeepReason::AgeGateUnavailable => "age-gate-unavailable",
            KeepReason::AgeGateMissingEntry => "age-gate-missing-entry",
            KeepReason::OrphanTooRecent => "orphan-too-recent",
            KeepReason::NonTerminal => "non-terminal",
            KeepReason::Unsealed => "unsealed",
            KeepReason::Live => "live",
            KeepReason::BeingRead => "being-read",
            KeepReason::Kept => "kept",
            KeepReason::DeleteFailed => "delete-failed",
        }
    }
}

impl std::fmt::Display for KeepReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is done with a run's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneStep {
    /// They are proven to be useless.
    Delete,
    /// They stay.
    Keep(KeepReason),
}

/// Decides. The bound of a time counts as reached.
pub fn prune(facts: &PruneFacts, times: &PruneTimes) -> PruneStep {
    match reason_to_keep(facts, times) {
        Some(reason) => PruneStep::Keep(reason),
        None => PruneStep::Delete,
    }
}

fn reason_to_keep(facts: &PruneFacts, times: &PruneTimes) -> Option<KeepReason> {
    if !facts.decoded {
        return Some(KeepReason::UndecodableName);
    }
    if facts.deletes_left == 0 {
        return Some(KeepReason::MaxDeletes);
    }
    match (facts.record, facts.age) {
        (PruneRecord::Failed, _) => return Some(KeepReason::StoreError),
        (PruneRecord::Live, _) => return Some(KeepReason::NonTerminal),
        (PruneRecord::Ended { sealed: false, .. }, _) => return Some(KeepReason::Unsealed),
        (PruneRecord::Ended { ended_for, .. }, _) => {
            // A journal that need not be kept needs no time that is known.
            let over = times.keep_journals == 0 || ended_for.is_some_and(|time| time >= times.keep_journals);
            if !over {
                return Some(KeepReason::Kept);
            }
        }
        (PruneRecord::Unknown, FilesAge::Unavailable) => return Some(KeepReason::AgeGateUnavailable),
        (PruneRecord::Unknown, FilesAge::MissingEntry) => return Some(KeepReason::AgeGateMissingEntry),
        (PruneRecord::Unknown, FilesAge::Known { newest, now }) => {
            // A file from the future is young.
            if newest.saturating_add(times.orphan_ttl) > now {
                return Some(KeepReason::OrphanTooRecent);
            }
        }
    }
    match facts.in_use {
        RunUse::Free => None,
        RunUse::Shim => Some(KeepReason::Live),
        RunUse::Reader => Some(KeepReason::BeingRead),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: u64 = 1000;
    const NOW: u64 = 50_000;

    /// One fact of each kind that allows a deletion, then those that do not, with the reason that they give.
    type Facts<T> = Vec<(T, Option<KeepReason>)>;

    fn ages() -> Facts<FilesAge> {
        let known = |newest| FilesAge::Known { newest, now: NOW };
        vec![
            (known(NOW - TTL), None),
            (known(0), None),
            (known(NOW - TTL + 1), Some(KeepReason::OrphanTooRecent)),
            (known(NOW), Some(KeepReason::OrphanTooRecent)),
            (known(NOW + 1), Some(KeepReason::OrphanTooRecent)),
            (known(u64::MAX), Some(KeepReason::OrphanTooRecent)),
            (FilesAge::MissingEntry, Some(KeepReason::AgeGateMissingEntry)),
            (FilesAge::Unavailable, Some(KeepReason::AgeGateUnavailable)),
        ]
    }

    fn records(keep: u64) -> Facts<PruneRecord> {
        let ended = |sealed, ended_for| PruneRecord::Ended { sealed, ended_for };
        let young = (keep > 0).then_some(KeepReason::Kept);
        vec![
            (ended(true, Some(500)), None),
            (ended(true, Some(u64::MAX)), None),
            (ended(true, Some(499)), young),
            (ended(true, Some(0)), young),
            (ended(true, None), young),
            (ended(false, Some(u64::MAX)), Some(KeepReason::Unsealed)),
            (ended(false, None), Some(KeepReason::Unsealed)),
            (PruneRecord::Live, Some(KeepReason::NonTerminal)),
            (PruneRecord::Failed, Some(KeepReason::StoreError)),
        ]
    }

    /// Every combination: of all that speaks against a deletion the first in the order of the questions is told, and
    /// without any there is a deletion.
    #[test]
    fn every_combination() {
        let names = [(true, None), (false, Some(KeepReason::UndecodableName))];
        let counts = [(1, None), (usize::MAX, None), (0, Some(KeepReason::MaxDeletes))];
        let uses = [
            (RunUse::Free, None),
            (RunUse::Shim, Some(KeepReason::Live)),
            (RunUse::Reader, Some(KeepReason::BeingRead)),
        ];
        let mut seen = std::collections::BTreeSet::new();
        for keep_journals in [0, 500] {
            let times = PruneTimes { orphan_ttl: TTL, keep_journals };
            // Ages decide of runs that the store does not know, and of no others.
            let known = records(keep_journals).into_iter();
            let known =
                known.flat_map(|(record, why)| ages().into_iter().map(move |(age, _)| (record, age, why)));
            let unknown = ages().into_iter().map(|(age, why)| (PruneRecord::Unknown, age, why));
            for (record, age, by_record) in known.chain(unknown) {
                for (decoded, by_name) in names {
                    for (deletes_left, by_count) in counts {
                        for (in_use, by_use) in uses {
                            let facts = PruneFacts { decoded, deletes_left, record, age, in_use };
                            let expected = by_name.or(by_count).or(by_record).or(by_use);
                            seen.extend(expected);
                            let expected = expected.map_or(PruneStep::Delete, PruneStep::Keep);
                            assert_eq!(prune(&facts, &times), expected, "{facts:?} {times:?}");
                        }
                    }
                }
            }
        }
        // Only an attempt can fail.
        let told = KeepReason::ALL.into_iter().filter(|reason| *reason != KeepReason::DeleteFailed);
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), told.collect::<Vec<_>>());
    }

    #[test]
    fn an_orphan_needs_no_time_where_none_is_wanted() {
        let age = FilesAge::Known { newest: NOW, now: NOW };
        let facts = PruneFacts {
            decoded: true,
            deletes_left: 1,
            record: PruneRecord::Unknown,
            age,
            in_use: RunUse::Free,
        };
        let times = PruneTimes { orphan_ttl: 0, keep_journals: 0 };
        assert_eq!(prune(&facts, &times), PruneStep::Delete);
        let age = FilesAge::Known { newest: NOW + 1, now: NOW };
        assert_eq!(
            prune(&PruneFacts { age, ..facts }, &times),
            PruneStep::Keep(KeepReason::OrphanTooRecent),
            "written in the future: nobody knows when"
        );
    }

    #[test]
    fn printed_and_stored_alike() {
        for reason in KeepReason::ALL {
            assert_eq!(serde_json::to_value(reason).expect("json"), reason.as_str());
        }
    }
}
