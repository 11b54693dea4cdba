//! Durations as people write them.

use std::time::Duration;

/// The duration in whole milliseconds, as records hold it.
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Reads `90s`, `30m`, `24h`, `7d`, `500ms`, or several in a row (`1h30m`).
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let fail =
        || format!("{text:?} is no duration: write a number and a unit (ms, s, m, h, d), as in 90s or 1h30m");
    let mut total = Duration::ZERO;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(fail());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(fail)?;
        let number: u64 = rest[..digits].parse().map_err(|_| fail())?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let millis: u64 = match &rest[..letters] {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(fail()),
        };
        let part = number.checked_mul(millis).map(Duration::from_millis).ok_or_else(fail)?;
        total = total.checked_add(part).ok_or_else(fail)?;
        rest = &rest[letters..];
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, millis) in
            [("90s", 90_000), ("1h30m", 5_400_000), ("500ms", 500), ("2d", 172_800_000), ("0s", 0)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for bad in ["", "5", "s", "5x", "-1s", "1.5h", "99999999999999999999s", "none"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }
}
