//! What becomes of an object. Everything that is not proven to be useless is kept.

use super::GcInput;

/// Where an object lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lies {
    /// Where it belongs; written at this time.
    InPlace { modified: u64 },
    /// Put aside at this time.
    Aside { since: u64 },
}

/// All that the decision is made from. Times in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Facts {
    /// Whether something that is live refers to the object.
    pub(super) live: bool,
    pub(super) lies: Lies,
    /// Whether the object also lies where it belongs, if this is a copy that was put aside.
    pub(super) in_place_too: bool,
}

/// What is done with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Something refers to it, and it is where it belongs; or it is a spare copy of that.
    KeepLive,
    /// Something refers to it: it is copied back to where it belongs.
    Restore,
    /// Nothing refers to it, yet: it is young, or its age is not known.
    KeepYoung,
    /// It is put aside.
    PutAside,
    /// It was put aside a short while ago.
    Wait,
    /// A snapshot was under way when it was put aside, and may refer to it in the end.
    Pinned,
    /// It is deleted for good.
    Delete,
}

/// Decides. The bound of a time counts as reached.
pub(super) fn decide(facts: &Facts, input: &GcInput) -> Step {
    // A time in the future tells nothing.
    let older_than = |time: u64, than: u64| input.now.checked_sub(time).is_some_and(|age| age >= than);
    match facts.lies {
        Lies::InPlace { .. } if facts.live => Step::KeepLive,
        Lies::InPlace { modified } if older_than(modified, input.grace) => Step::PutAside,
        Lies::InPlace { .. } => Step::KeepYoung,
        Lies::Aside { .. } if facts.live && facts.in_place_too => Step::KeepLive,
        Lies::Aside { .. } if facts.live => Step::Restore,
        Lies::Aside { since } if !older_than(since, input.quarantine_for) => Step::Wait,
        Lies::Aside { since } if input.oldest_pin.is_some_and(|pin| pin <= since) => Step::Pinned,
        Lies::Aside { .. } => Step::Delete,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000_000;

    fn input(oldest_pin: Option<u64>) -> GcInput {
        GcInput { grace: 100, quarantine_for: 1000, oldest_pin, ..GcInput::new(Default::default(), NOW) }
    }

    #[test]
    fn every_case() {
        let place = |modified| Lies::InPlace { modified };
        let aside = |since| Lies::Aside { since };
        for (live, lies, in_place_too, pin, expected) in [
            (true, place(0), false, None, Step::KeepLive),
            (true, place(NOW), false, None, Step::KeepLive),
            (true, place(NOW + 1), false, Some(0), Step::KeepLive),
            (false, place(NOW - 100), false, None, Step::PutAside),
            (false, place(0), false, None, Step::PutAside),
            // A pin hinders no putting aside: what is aside can still be read.
            (false, place(0), false, Some(0), Step::PutAside),
            (false, place(NOW - 99), false, None, Step::KeepYoung),
            (false, place(NOW), false, None, Step::KeepYoung),
            (false, place(NOW + 1), false, None, Step::KeepYoung),
            (false, place(u64::MAX), false, None, Step::KeepYoung),
            (true, aside(0), false, None, Step::Restore),
            (true, aside(NOW), false, None, Step::Restore),
            (true, aside(NOW + 1), false, Some(0), Step::Restore),
            (true, aside(0), true, None, Step::KeepLive),
            (true, aside(0), true, Some(0), Step::KeepLive),
            (false, aside(NOW - 1000), false, None, Step::Delete),
            (false, aside(NOW - 1000), true, None, Step::Delete),
            (false, aside(0), false, None, Step::Delete),
            (false, aside(NOW - 999), false, None, Step::Wait),
            (false, aside(NOW), false, None, Step::Wait),
            (false, aside(NOW + 1), false, None, Step::Wait),
            (false, aside(u64::MAX), false, None, Step::Wait),
            (false, aside(NOW - 999), false, Some(0), Step::Wait),
            (false, aside(NOW - 1000), false, Some(0), Step::Pinned),
            (false, aside(NOW - 1000), false, Some(NOW - 1001), Step::Pinned),
            (false, aside(NOW - 1000), false, Some(NOW - 1000), Step::Pinned),
            (false, aside(NOW - 1000), true, Some(NOW - 1000), Step::Pinned),
            (false, aside(NOW - 1000), false, Some(NOW - 999), Step::Delete),
            (false, aside(NOW - 1000), false, Some(u64::MAX), Step::Delete),
        ] {
            let facts = Facts { live, lies, in_place_too };
            assert_eq!(decide(&facts, &input(pin)), expected, "{facts:?}, pin {pin:?}");
        }
    }

    #[test]
    fn no_time_is_no_time_to_wait() {
        let input = GcInput { grace: 0, quarantine_for: 0, ..GcInput::new(Default::default(), NOW) };
        let facts = |lies| Facts { live: false, lies, in_place_too: false };
        assert_eq!(decide(&facts(Lies::InPlace { modified: NOW }), &input), Step::PutAside);
        assert_eq!(decide(&facts(Lies::Aside { since: NOW }), &input), Step::Delete);
        assert_eq!(decide(&facts(Lies::Aside { since: NOW + 1 }), &input), Step::Wait);
    }
}
