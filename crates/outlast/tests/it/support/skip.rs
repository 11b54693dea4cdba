//! Saying that something was not tested.

use std::io::Write;

/// Says that the test that calls it, or a part of it, is skipped, and why. Written past the harness, which keeps to itself
/// what a passing test prints.
pub fn skipped(why: &str) {
    let thread = std::thread::current();
    let _ = writeln!(std::io::stderr(), "SKIPPED {}: {why}", thread.name().unwrap_or("a part of a test"));
}
