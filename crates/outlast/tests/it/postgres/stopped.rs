//! Stop takes effect on whatever host.

use std::time::Duration;

use super::http::Served;
use super::place::{Schema, bench};
use crate::support::{eventually_within, gated_agent};

/// The host that is asked does not reach the sandbox, and nobody tells the one that does.
#[test]
fn asked_of_a_host_that_does_not_reach_the_sandbox_and_without_notifications() {
    let schema = Schema::new();
    let (here, there) = (bench(&schema.url, false), bench(&schema.url, false));
    let asked = Served::start(&there);
    for run in ["r1", "r2", "r3"] {
        let mut driver = here.spawn(here.run_args(run, &[], &gated_agent(3, 6, 0)));
        driver.wait_for("line 2");
        let record = asked.post(&format!("/v1/runs/{run}/cancel")).expect("answered");
        assert_eq!(record["cancelRequested"]["reason"], "user", "{record}");
        eventually_within(Duration::from_secs(2), "the agent is gone", || {
            here.shims().is_empty().then_some(())
        });
        assert_eq!(driver.finish().code(), 143);
        let record = there.record(run);
        assert_eq!((&record["status"], &record["driverEpoch"]), (&"aborted".into(), &1.into()), "{record}");
        here.check_ended(run);
        here.outlast(["verify", run]).ok();
    }
}

/// The command waits until the driver, elsewhere, has ended the run.
#[test]
fn by_the_command_line_of_another_host() {
    let schema = Schema::new();
    let (here, there) = (bench(&schema.url, false), bench(&schema.url, true));
    let mut driver = here.spawn(here.run_args("r", &[], &gated_agent(3, 6, 0)));
    driver.wait_for("line 2");
    let cancel = there.spawn(["cancel", "r"]);
    eventually_within(Duration::from_secs(4), "the agent is gone", || here.shims().is_empty().then_some(()));
    cancel.finish().ok();
    assert_eq!(there.record("r")["status"], "aborted");
    assert_eq!(driver.finish().code(), 143);
    here.check_ended("r");
    assert!(here.shims().is_empty());
}
