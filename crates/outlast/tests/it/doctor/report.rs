//! The report in JSON.

use serde_json::Value;

use crate::support::Finished;

/// The checks of `outlast doctor --json`.
pub struct Report(Vec<Value>);

impl Report {
    #[track_caller]
    pub fn of(finished: &Finished) -> Report {
        let checks: Vec<Value> = serde_json::from_str(&finished.stdout)
            .unwrap_or_else(|error| panic!("{error}: {} {}", finished.stdout, finished.stderr));
        for check in &checks {
            let level = check["level"].as_str();
            assert!(matches!(level, Some("ok" | "warning" | "problem")), "{check}");
            assert!(!check["finding"].as_str().unwrap_or_default().is_empty(), "{check}");
        }
        let problem = checks.iter().any(|check| check["level"] == "problem");
        assert_eq!(finished.code(), i32::from(problem), "the exit status says whether there is a problem");
        Report(checks)
    }

    /// The names of the checks, in order.
    pub fn names(&self) -> Vec<&str> {
        self.0.iter().filter_map(|check| check["check"].as_str()).collect()
    }

    /// Level, finding and advice of the check about this subject.
    #[track_caller]
    pub fn about(&self, check: &str, subject: Option<&str>) -> (&str, &str, &str) {
        let found = self.0.iter().find(|c| c["check"] == check && c["subject"].as_str() == subject);
        let found = found.unwrap_or_else(|| panic!("{check} {subject:?} in {:?}", self.0));
        let text = |name: &str| found[name].as_str().unwrap_or_default();
        (text("level"), text("finding"), text("advice"))
    }

    /// The same of a check that has no subject.
    #[track_caller]
    pub fn check(&self, check: &str) -> (&str, &str, &str) {
        self.about(check, None)
    }
}
