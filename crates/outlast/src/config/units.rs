//! Durations and sizes as people write them.

use std::time::Duration;

pub use outlast_core::duration::parse_duration;

/// A duration that may also be none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// So long.
    For(Duration),
    /// No limit.
    None,
}

impl Limit {
    /// The duration, if there is one.
    pub fn duration(self) -> Option<Duration> {
        match self {
            Limit::For(time) => Some(time),
            Limit::None => None,
        }
    }
}

/// Reads a duration, or `none`.
pub fn parse_limit(text: &str) -> Result<Limit, String> {
    match text.trim() {
        "none" => Ok(Limit::None),
        other => {
            parse_duration(other).map(Limit::For).map_err(|error| format!("{error}, or none for no limit"))
        }
    }
}

/// Reads `512MiB`, `16GiB`, `4096`.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let fail =
        || format!("{text:?} is no size: write a number of bytes, or a number and KiB, MiB, GiB or TiB");
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| fail())?;
    let shift = match text[digits..].trim() {
        "" | "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        "TiB" => 40,
        _ => return Err(fail()),
    };
    number.checked_mul(1 << shift).ok_or_else(fail)
}

/// A duration for people: `320 ms`, `4.2 s`, `3 min 5 s`, `2 h 10 min`.
pub fn show_duration(time: Duration) -> String {
    let millis = time.as_millis();
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{millis} ms"),
        1..60 => format!("{}.{} s", seconds, (millis % 1000) / 100),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..172_800 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits() {
        assert_eq!(parse_limit("none"), Ok(Limit::None));
        assert_eq!(parse_limit("1h30m"), Ok(Limit::For(Duration::from_secs(5400))));
        assert!(parse_limit("soon").is_err_and(|error| error.contains("none")));
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert_eq!(parse_bytes("2 GiB"), Ok(2 << 30));
        for bad in ["", "x", "1GB", "99999999999TiB"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }
}
