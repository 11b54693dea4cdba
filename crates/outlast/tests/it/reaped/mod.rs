//! Runs that nobody watches, and what a sweep makes of them.

mod crashed;
mod expired;
mod finished;
mod many;
mod reclaimed;
mod retained;
mod served;
mod untouched;

use std::time::Duration;

use outlast::store::{Clock, SystemClock};
use serde_json::Value;

use crate::support::{Bench, eventually};

/// Starts a run and leaves it alone.
fn leave(bench: &Bench, run: &str, flags: &[&str], script: &str) {
    let mut args = vec!["run", "-d", "--run-id", run];
    args.extend(flags);
    args.extend(["--", "sh", "-c", script]);
    bench.outlast(args).ok();
}

/// A sweep, which must not have failed.
#[track_caller]
fn reap(bench: &Bench, flags: &[&str]) -> Value {
    let mut args = vec!["reap", "--json"];
    args.extend(flags);
    serde_json::from_str(&bench.outlast(args).ok()).expect("a result")
}

/// What the sweep says of the run.
#[track_caller]
fn entry<'r>(result: &'r Value, run: &str) -> &'r Value {
    let runs = result["runs"].as_array().expect("runs");
    runs.iter().find(|entry| entry["runId"] == run).unwrap_or_else(|| panic!("nothing of {run}: {result}"))
}

/// Waits until the run's agent has ended, as its journal says.
fn until_ended(bench: &Bench, run: &str) {
    eventually("the agent's end", || bench.run_file(run, ".exit").filter(|path| filled(path)));
}

/// Whether an exit is recorded in the file, whose blocks are there from the start.
fn filled(path: &std::path::Path) -> bool {
    std::fs::read(path).is_ok_and(|bytes| bytes.first() == Some(&b'{'))
}

/// Waits until nobody has watched the run for so long.
fn until_detached_for(bench: &Bench, run: &str, time: Duration) {
    eventually("nobody watches", || {
        let since = bench.record(run)["detachedSince"].as_u64()?;
        (SystemClock::new().wall_ms() >= since + time.as_millis() as u64).then_some(())
    });
}
