//! Waiting for a condition, with a deadline.

use std::time::{Duration, Instant};

/// Long enough for a loaded machine; a test that reaches it has failed.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Looks again and again until the condition yields a value.
pub fn eventually<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    eventually_within(DEADLINE, what, condition)
}

/// As [`eventually`], with another deadline.
#[allow(clippy::disallowed_methods, reason = "tests run on real time")]
pub fn eventually_within<T>(deadline: Duration, what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(start.elapsed() < deadline, "waited {deadline:?} in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
