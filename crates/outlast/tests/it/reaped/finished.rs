//! The agent has ended, and nobody was there.

use super::{entry, leave, reap, until_ended};
use crate::support::{Bench, eventually, kill9, numbered_text};

/// Also one second after its viewer has left, long before its time is up.
#[test]
fn it_is_completed_by_the_next_sweep_with_all_that_it_said() {
    let bench = Bench::new();
    leave(&bench, "r", &[], "for i in 0 1 2; do echo line $i; done; exit 3");
    until_ended(&bench, "r");
    assert_eq!(bench.record("r")["status"], "running");
    let result = reap(&bench, &[]);
    assert_eq!((&result["considered"], &result["probed"]), (&1.into(), &1.into()));
    let swept = entry(&result, "r");
    assert_eq!(
        (&swept["outcome"], &swept["status"], &swept["exitCode"]),
        (&"finalized".into(), &"failed".into(), &3.into())
    );
    assert_eq!(Bench::text(&bench.check_ended("r")), numbered_text(3));
    let record = bench.record("r");
    assert_eq!((&record["sealed"], &record["driverEpoch"]), (&true.into(), &2.into()));
    let again = reap(&bench, &[]);
    assert_eq!(again["considered"], 0, "once");
}

/// No sentinel will ever come: found by the shim's lock, not left until its time is up.
#[test]
fn a_shim_that_was_killed() {
    let bench = Bench::new();
    leave(&bench, "r", &[], "echo up; sleep 1000");
    let shim = eventually("its shim", || bench.shim("r"));
    eventually("its first line", || {
        bench.run_file("r", ".ndjson").filter(|path| std::fs::metadata(path).is_ok_and(|file| file.len() > 0))
    });
    kill9(shim);
    let result = eventually("it is found lost", || {
        let result = reap(&bench, &[]);
        (result["outcomes"]["finalized"] == 1).then_some(result)
    });
    assert_eq!(entry(&result, "r")["status"], "failed");
    let log = bench.check_ended("r");
    assert_eq!(Bench::text(&log), "up\n");
    assert_eq!(log[log.len() - 1].json["code"], "agent_lost");
}

/// An agent that was killed is one that has ended: its shim says so.
#[test]
fn an_agent_that_was_killed() {
    let bench = Bench::new();
    leave(&bench, "r", &[], "echo up; kill -KILL $$");
    until_ended(&bench, "r");
    let result = reap(&bench, &[]);
    let swept = entry(&result, "r");
    assert_eq!((&swept["outcome"], &swept["exitCode"]), (&"finalized".into(), &137.into()));
    assert_eq!(bench.record("r")["error"]["code"], "agent_failed");
}

/// A reboot takes agents and shims with it.
#[test]
fn a_machine_that_was_restarted() {
    let bench = Bench::new();
    leave(&bench, "r", &[], "echo up; sleep 1000");
    let shim = eventually("its shim", || bench.shim("r"));
    let mut reap = bench.command(["reap", "--json"]);
    reap.env("OUTLAST_TEST_BOOT_ID", "another-boot");
    kill9(shim);
    let finished = crate::support::Proc::new(reap.spawn().expect("spawn")).finish().ok();
    let result: serde_json::Value = serde_json::from_str(&finished).expect("a result");
    assert_eq!(entry(&result, "r")["outcome"], "finalized");
    assert_eq!(bench.record("r")["error"]["code"], "agent_lost");
}

/// The host that drove it died without a word, and with it its viewer.
#[test]
fn the_runs_of_a_host_that_died() {
    let bench = Bench::new();
    let mut driver = bench.spawn(["run", "--run-id", "r", "--", "sh", "-c", "echo up; sleep 0.5; echo down"]);
    driver.wait_for("up");
    driver.kill9();
    until_ended(&bench, "r");
    // A viewer that was killed counts for as long as it would have been there.
    let result = eventually("it is found", || {
        let result = reap(&bench, &[]);
        (result["outcomes"]["finalized"] == 1).then_some(result)
    });
    assert_eq!(entry(&result, "r")["status"], "completed");
    assert_eq!(Bench::text(&bench.check_ended("r")), "up\ndown\n");
}
