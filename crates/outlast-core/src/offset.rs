//! Positions in the delivery log.

use serde::{Deserialize, Serialize};

/// The number of an event within its run's log: 1 for the first. 0 stands for the place before the first.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl std::fmt::Debug for Seq {
    /// The offset: that is how messages show it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.offset())
    }
}

impl Seq {
    /// The place before the first event.
    pub const START: Seq = Seq(0);

    /// The number of the event that follows.
    pub fn next(self) -> Seq {
        Seq(self.0 + 1)
    }

    /// The opaque form that clients hold.
    pub fn offset(self) -> String {
        format!("{:016}", self.0)
    }
}

/// Where a reader wants to start: strictly after the place that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offset {
    /// After the event of this number; `After(Seq::START)` is the start.
    After(Seq),
    /// After the event that is the last at the time of the read.
    Now,
}

/// The text is not an offset that Outlast has minted, nor `-1`, nor `now`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "malformed offset {text:?}: use an id that a stream has delivered, \"-1\" for the start or \"now\" for the tail"
)]
pub struct OffsetError {
    /// What was given, shortened.
    pub text: String,
}

impl Offset {
    /// Reads the opaque form. Offsets have a fixed width, so that they sort as text as they do as numbers; any other
    /// spelling of the number is refused, so that one place has one name.
    pub fn parse(text: &str) -> Result<Offset, OffsetError> {
        match text {
            "-1" => return Ok(Offset::After(Seq::START)),
            "now" => return Ok(Offset::Now),
            _ => {}
        }
        let number = text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten();
        match number.map(Seq) {
            Some(seq) if seq.offset() == text => Ok(Offset::After(seq)),
            _ => Err(OffsetError { text: text.chars().take(64).collect() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_refusals() {
        assert_eq!(Offset::parse(&Seq(42).offset()), Ok(Offset::After(Seq(42))));
        assert_eq!(Offset::parse("-1"), Ok(Offset::After(Seq::START)));
        assert_eq!(Offset::parse("now"), Ok(Offset::Now));
        for bad in [
            "",
            "42",
            "-2",
            "bad",
            " 0000000000000001",
            "000000000000001",
            "00000000000000001",
            "+000000000000001",
        ] {
            assert!(Offset::parse(bad).is_err(), "{bad:?}");
        }
        assert!(Seq(9).offset() < Seq(10).offset());
    }
}
