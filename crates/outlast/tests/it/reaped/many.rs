//! More detached runs than a sweep may drive.

use super::{leave, reap, until_ended};
use crate::support::Bench;

/// Those that have ended are completed, a few at a time, whatever stands before them.
#[test]
fn in_batches_and_nobody_is_starved() {
    let bench = Bench::new();
    for n in 0..4 {
        leave(&bench, &format!("done-{n}"), &[], "echo done");
        leave(&bench, &format!("busy-{n}"), &[], "sleep 1000");
    }
    for n in 0..4 {
        until_ended(&bench, &format!("done-{n}"));
    }
    let first = reap(&bench, &["--max-runs", "3"]);
    assert_eq!(first["outcomes"]["finalized"], 3, "{first}");
    let second = reap(&bench, &["--max-runs", "3"]);
    assert_eq!(
        (&second["outcomes"]["finalized"], &second["outcomes"]["producing"]),
        (&1.into(), &4.into()),
        "{second}"
    );
    for n in 0..4 {
        assert_eq!(bench.status(&format!("done-{n}")).as_deref(), Some("completed"));
        bench.outlast(["cancel", &format!("busy-{n}")]).ok();
    }
}
