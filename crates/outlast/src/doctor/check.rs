//! What a check says.

use serde::Serialize;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Runs work, but there is something to know; also where it could not be found out.
    Warning,
    /// Runs do not work.
    Problem,
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at; stable, for programs.
    pub check: &'static str,
    /// Which of several, where there are several.
    pub subject: Option<String>,
    /// How bad it is.
    pub level: Level,
    /// What is so.
    pub finding: String,
    /// What to do.
    pub advice: Option<String>,
}

impl Check {
    pub fn ok(check: &'static str, finding: impl Into<String>) -> Check {
        Check { check, subject: None, level: Level::Ok, finding: finding.into(), advice: None }
    }

    pub fn warning(check: &'static str, finding: impl Into<String>, advice: impl Into<String>) -> Check {
        Check { level: Level::Warning, advice: Some(advice.into()), ..Check::ok(check, finding) }
    }

    pub fn problem(check: &'static str, finding: impl Into<String>, advice: impl Into<String>) -> Check {
        Check { level: Level::Problem, advice: Some(advice.into()), ..Check::ok(check, finding) }
    }

    /// It could not be found out, because of this.
    pub fn unknown(check: &'static str, cause: impl std::fmt::Display) -> Check {
        Check { level: Level::Warning, ..Check::ok(check, format!("could not tell: {cause}")) }
    }

    pub fn about(self, subject: impl Into<String>) -> Check {
        Check { subject: Some(subject.into()), ..self }
    }
}

/// A size for people: `512 MiB`, `1.5 GiB`.
pub fn show_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let Some(unit) = (0..UNITS.len()).rev().find(|n| bytes >> (10 * (n + 1)) > 0) else {
        return format!("{bytes} bytes");
    };
    let tenths = bytes / ((1u64 << (10 * (unit + 1))) / 10);
    match tenths % 10 {
        0 => format!("{} {}", tenths / 10, UNITS[unit]),
        rest => format!("{}.{rest} {}", tenths / 10, UNITS[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_for_people() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1024, "1 KiB"),
            (512 << 20, "512 MiB"),
            (3 << 29, "1.5 GiB"),
            (u64::MAX, "16384 PiB"),
        ] {
            assert_eq!(show_bytes(bytes), text, "{bytes}");
        }
    }
}
