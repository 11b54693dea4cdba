//! What is to be done with one object.

/// An object as it was listed.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObjectFacts<'a> {
    /// The last part of its key, where it lies directly beneath the prefix.
    pub(super) name: Option<&'a str>,
    /// Whether something points to it.
    pub(super) live: bool,
    /// When it was written last, in milliseconds since 1970.
    pub(super) modified: u64,
    /// What time it is, in milliseconds since 1970.
    pub(super) now: u64,
    /// How long an object to which nothing points is left alone, in milliseconds: whoever has put it may be about to
    /// point to it.
    pub(super) grace: u64,
}

/// What to do with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Something points to it.
    Referenced,
    /// It is left alone.
    Keep,
    /// It may be condemned, if the store agrees.
    Orphan,
}

pub(super) fn judge(facts: &ObjectFacts<'_>) -> Verdict {
    let digest = facts.name.is_some_and(|name| {
        name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    });
    if facts.live {
        return Verdict::Referenced;
    }
    // Written in the future: another clock, so its age is unknown.
    let age = facts.now.checked_sub(facts.modified);
    match age {
        Some(age) if digest && age >= facts.grace => Verdict::Orphan,
        _ => Verdict::Keep,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        let digest = "0123456789abcdef".repeat(4);
        let upper = digest.to_uppercase();
        let facts = |name, live, modified| ObjectFacts { name, live, modified, now: 1000, grace: 100 };
        for (name, live, modified, expected) in [
            (Some(digest.as_str()), true, 0, Verdict::Referenced),
            (Some(digest.as_str()), true, 5000, Verdict::Referenced),
            (Some(digest.as_str()), false, 900, Verdict::Orphan),
            (Some(digest.as_str()), false, 0, Verdict::Orphan),
            (Some(digest.as_str()), false, 901, Verdict::Keep),
            (Some(digest.as_str()), false, 1001, Verdict::Keep),
            (Some(upper.as_str()), false, 0, Verdict::Keep),
            (Some(&digest[1..]), false, 0, Verdict::Keep),
            (Some("notes.txt"), false, 0, Verdict::Keep),
            (None, false, 0, Verdict::Keep),
        ] {
            assert_eq!(judge(&facts(name, live, modified)), expected, "{name:?} {live} {modified}");
        }
    }
}
