//! What becomes of a sandbox that was found on its provider's side?

/// What the store knows of the instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstanceRow {
    /// Nothing.
    Missing,
    /// It is to be made, is there, or is being destroyed: somebody sees to it.
    Kept,
    /// It is gone: it was made after it had been given up.
    Gone,
}

/// What is known of something that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrphanFacts {
    /// Whether it carries this deployment's label.
    pub ours: bool,
    /// What the store knows of it.
    pub row: InstanceRow,
    /// Whether it was put aside.
    pub quarantined: bool,
    /// For how many milliseconds it has been there, or aside; none where that cannot be told.
    pub age: Option<u64>,
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrphanStep {
    /// It is another's, or nobody can tell whose: it is never touched.
    NotOurs,
    /// It has a record.
    Kept,
    /// It may be a sandbox that is being made at this moment.
    TooYoung,
    /// Nobody knows of it: it is put aside first, since the record may be what was lost.
    Quarantine,
    /// It is destroyed.
    Destroy,
}

/// Decides. `grace` is how old something must be, in milliseconds; an age that is unknown is none.
pub fn orphan(facts: &OrphanFacts, grace: u64) -> OrphanStep {
    if !facts.ours {
        return OrphanStep::NotOurs;
    }
    if facts.row == InstanceRow::Kept {
        return OrphanStep::Kept;
    }
    if facts.age.is_none_or(|age| age < grace) {
        return OrphanStep::TooYoung;
    }
    match (facts.row, facts.quarantined) {
        (InstanceRow::Missing, false) => OrphanStep::Quarantine,
        _ => OrphanStep::Destroy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination() {
        for ours in [false, true] {
            for row in [InstanceRow::Missing, InstanceRow::Kept, InstanceRow::Gone] {
                for quarantined in [false, true] {
                    for age in [None, Some(9), Some(10)] {
                        let expected = match (ours, row, quarantined, age) {
                            (false, ..) => OrphanStep::NotOurs,
                            (_, InstanceRow::Kept, ..) => OrphanStep::Kept,
                            (.., None | Some(9)) => OrphanStep::TooYoung,
                            (_, InstanceRow::Missing, false, _) => OrphanStep::Quarantine,
                            _ => OrphanStep::Destroy,
                        };
                        let facts = OrphanFacts { ours, row, quarantined, age };
                        assert_eq!(orphan(&facts, 10), expected, "{facts:?}");
                    }
                }
            }
        }
    }
}
