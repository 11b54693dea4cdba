//! The process that drives is killed: at every step, again and again, with every signal that a terminal sends.

use std::collections::BTreeMap;
use std::fs;

use rustix::process::Signal;

use crate::support::{Bench, Proc, eventually, numbered_agent, numbered_text};

const LINES: u32 = 12;
const STATUS: u8 = 7;

/// `outlast run` of the numbered agent under this run id, in a lent workspace.
fn run_args(bench: &Bench, run: &str, pause: &str) -> Vec<String> {
    let workspace = bench.workspace();
    let mut args = vec!["run".to_owned(), "--json".to_owned(), "--run-id".to_owned(), run.to_owned()];
    args.extend(["--thread".to_owned(), format!("thread-{run}")]);
    args.extend(["--workspace".to_owned(), workspace.to_str().expect("utf-8").to_owned(), "--".to_owned()]);
    args.extend(numbered_agent(LINES, pause, STATUS));
    args
}

/// How often the agent was started.
fn starts(bench: &Bench) -> usize {
    fs::read_to_string(bench.workspace().join("starts")).map_or(0, |text| text.lines().count())
}

/// The run is whole: every line once, in order, one start, the agent's own status.
#[track_caller]
fn check_whole(bench: &Bench, run: &str) {
    let log = bench.check_ended(run);
    assert_eq!(Bench::text(&log), numbered_text(LINES));
    let record = bench.record(run);
    assert_eq!(record["exitCode"], STATUS);
    assert_eq!(record["status"], "failed", "the agent's own status is 7");
    assert_eq!(starts(bench), 1, "agents started");
}

/// The points that a run passes, with how often.
fn points(bench: &Bench, args: &[String]) -> BTreeMap<String, usize> {
    let log = bench.path().join("points");
    let mut command = bench.command(args);
    command.env("OUTLAST_FAILPOINT_LOG", &log);
    let finished = Proc::new(command.spawn().expect("spawn")).finish();
    assert_eq!(finished.code(), i32::from(STATUS), "{}", finished.stderr);
    let mut points = BTreeMap::new();
    for name in fs::read_to_string(&log).expect("points").lines() {
        *points.entry(name.to_owned()).or_insert(0) += 1;
    }
    points
}

/// The steps at which to strike: each point the first time, in the middle and the last time that it is passed.
pub fn steps() -> Vec<String> {
    let bench = Bench::new();
    let points = points(&bench, &run_args(&bench, "census", "0.02"));
    assert!(points.len() >= 12, "a run has at least a dozen steps: {points:?}");
    points
        .into_iter()
        .flat_map(|(name, times)| {
            let mut nth = vec![1, times.div_ceil(2), times.saturating_sub(1).max(1)];
            nth.dedup();
            nth.into_iter().map(move |n| format!("{name}@{n}"))
        })
        .collect()
}

#[test]
fn killed_at_every_step_and_attached_at_once() {
    let steps = steps();
    // Two at a time: they mostly wait for their agents.
    let (one, other) = steps.split_at(steps.len() / 2);
    std::thread::scope(|scope| {
        for half in [one, other] {
            scope.spawn(move || half.iter().for_each(|step| killed_at(step)));
        }
    });
}

fn killed_at(step: &str) {
    eprintln!("killed at {step}");
    let bench = Bench::new();
    let args = run_args(&bench, "r", "0.02");
    let mut command = bench.command(&args);
    command.env("OUTLAST_FAILPOINT", format!("{step}=kill"));
    let killed = Proc::new(command.spawn().expect("spawn")).finish();
    if killed.code() != 137 {
        // The point was passed fewer times than in the census: appends gather what the agent printed meanwhile.
        assert_eq!(killed.code(), i32::from(STATUS), "{}", killed.stderr);
        return check_whole(&bench, "r");
    }
    if bench.status("r").is_none() {
        assert_eq!(step, "accept.before@1", "only a run that was never accepted is not there");
        assert_eq!(starts(&bench), 0);
        return;
    }
    let attached = bench.outlast(["attach", "--json", "r"]);
    assert_eq!(attached.code(), i32::from(STATUS), "{step}: {}", attached.stderr);
    assert_eq!(
        attached.stdout,
        bench.outlast(["logs", "--json", "r"]).ok(),
        "{step}: what attach shows is the log, from the start to the end"
    );
    check_whole(&bench, "r");
}

#[test]
fn killed_again_and_again() {
    let bench = Bench::new();
    let mut proc = bench.spawn(run_args(&bench, "r", "0.05"));
    let mut seen = 0;
    for n in 1..=5 {
        // Each driver is killed after it has brought one more line into the log.
        proc.wait_for(&format!("line {}", 2 * n));
        seen += 1;
        proc.kill9();
        proc = bench.spawn(["attach", "--json", "r"]);
    }
    assert_eq!(seen, 5);
    assert_eq!(proc.finish().code(), i32::from(STATUS));
    check_whole(&bench, "r");
    let epoch = bench.record("r")["driverEpoch"].as_u64().expect("epoch");
    assert!(epoch >= 6, "each driver had an epoch of its own: {epoch}");
}

#[test]
fn a_signal_of_the_terminal_detaches_and_says_how_to_come_back() {
    for (signal, status) in [(Signal::INT, 130), (Signal::HUP, 129), (Signal::TERM, 143)] {
        let bench = Bench::new();
        let mut proc = bench.spawn(run_args(&bench, "r", "0.05"));
        proc.wait_for("line 2");
        proc.signal(signal);
        let left = proc.finish();
        assert_eq!(left.code(), status, "{signal:?}");
        assert!(left.stderr.contains("outlast attach r"), "{}", left.stderr);
        assert!(left.stderr.contains("outlast cancel r"), "{}", left.stderr);
        let record = bench.record("r");
        assert_eq!(record["status"], "running");
        assert_eq!(record["driver"], serde_json::Value::Null, "the claim was given back");
        assert!(record["detachedSince"].is_u64(), "nobody watches: {record}");
        assert_eq!(bench.outlast(["attach", "r"]).code(), i32::from(STATUS));
        check_whole(&bench, "r");
    }
}

#[test]
fn a_run_that_finished_alone_is_collected_later() {
    let bench = Bench::new();
    let mut args = run_args(&bench, "r", "0.01");
    args.insert(1, "-d".to_owned());
    let started = bench.outlast(&args);
    assert_eq!(started.code(), 0, "{}", started.stderr);
    let record = bench.record("r");
    assert_eq!(record["driver"], serde_json::Value::Null, "-d leaves no driver");
    eventually("the journal says that the agent has exited", || {
        let listed = bench.outlast(["ps"]).ok();
        listed.contains("exited 7, not collected: outlast attach r").then_some(())
    });
    let probe = &bench.record("r")["probe"];
    assert_eq!(probe["state"], "finished", "{probe}");
    assert_eq!(probe["exitCode"], STATUS);
    assert_eq!(bench.record("r")["status"], "running", "asking changes nothing");
    assert_eq!(bench.outlast(["attach", "r"]).code(), i32::from(STATUS));
    check_whole(&bench, "r");
}
