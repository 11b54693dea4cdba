//! The process that drives is frozen for longer than its lease, succeeded, and thawed.

use rustix::process::Signal;

use crate::killed;
use crate::support::{Bench, Proc, eventually, is_stopped, numbered_agent, numbered_text};

const LINES: u32 = 12;

#[test]
fn frozen_at_every_step_succeeded_and_thawed() {
    let steps = killed::steps();
    let parts: Vec<Vec<&String>> = (0..4).map(|n| steps.iter().skip(n).step_by(4).collect()).collect();
    // Four at a time: they mostly wait for leases to end.
    std::thread::scope(|scope| {
        for part in parts {
            scope.spawn(move || part.into_iter().for_each(|step| frozen_at(step)));
        }
    });
}

fn frozen_at(step: &str) {
    eprintln!("frozen at {step}");
    let bench = Bench::new();
    let workspace = bench.workspace();
    let mut args = vec!["run", "--json", "--run-id", "r", "--thread", "t", "--workspace"];
    let agent = numbered_agent(LINES, "0.02", 7);
    args.extend([workspace.to_str().expect("utf-8"), "--"]);
    args.extend(agent.iter().map(String::as_str));
    let mut command = bench.command(&args);
    command.env("OUTLAST_FAILPOINT", format!("{step}=stop"));
    let mut frozen = Proc::new(command.spawn().expect("spawn"));
    let stopped = eventually("frozen, or ended without passing the point", || {
        if is_stopped(frozen.pid()) { Some(true) } else { frozen.has_ended().then_some(false) }
    });
    if !stopped {
        return;
    }
    if bench.status("r").is_none() {
        assert_eq!(step, "accept.before@1");
        frozen.signal(Signal::CONT);
        assert_eq!(frozen.finish().code(), 7);
        return;
    }
    // The successor waits for the lease to end, and ends the run.
    let successor = bench.outlast(["attach", "--json", "r"]);
    assert_eq!(successor.code(), 7, "{step}: {}", successor.stderr);
    let log = bench.outlast(["logs", "--json", "r"]).ok();
    assert_eq!(successor.stdout, log, "{step}");
    let record = bench.record("r");

    frozen.signal(Signal::CONT);
    let thawed = frozen.finish();
    assert_eq!(thawed.code(), 7, "{step}: it ends as a plain reader: {}", thawed.stderr);
    assert_eq!(thawed.stdout, log, "{step}: it has read every event once");
    assert_eq!(bench.outlast(["logs", "--json", "r"]).ok(), log, "{step}: it has written nothing");
    assert_eq!(bench.record("r"), record, "{step}: it has changed nothing");
    assert_eq!(Bench::text(&bench.check_ended("r")), numbered_text(LINES), "{step}");
    let starts = std::fs::read_to_string(workspace.join("starts")).expect("starts");
    assert_eq!(starts.lines().count(), 1, "{step}: one agent");
}
