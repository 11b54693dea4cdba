//! A run is stopped from another shell: everything of it is gone, it says so, and stays so.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{
    Bench, Finished, Marker, Ordinary, Proc, eventually, is_stopped, kill9, numbered_agent, numbered_text,
    stubborn_agent, wait_for_tree,
};

/// Within this time of the call no process of the agent's tree lives.
const GONE_WITHIN: Duration = Duration::from_secs(8);

/// Of `run` and `attach` after a cancel.
const ABORTED: i32 = 143;

fn config(fence: &str) -> String {
    with_lease(fence, "1500ms")
}

fn with_lease(fence: &str, lease: &str) -> String {
    format!("[sandbox]\nfence = \"{fence}\"\n[driver]\nlease = \"{lease}\"\n")
}

/// The arguments of `outlast run` of the command in the bench's workspace.
fn run_args(bench: &Bench, run: &str, command: &[String]) -> Vec<String> {
    let workspace = bench.workspace();
    let workspace = workspace.to_str().expect("utf-8");
    let thread = format!("thread-{run}");
    let args = ["run", "--json", "--run-id", run, "--thread", &thread, "--workspace", workspace, "--"];
    args.into_iter().map(str::to_owned).chain(command.iter().cloned()).collect()
}

/// Calls `outlast cancel` and checks that the agent's tree is gone in time.
#[track_caller]
#[allow(clippy::disallowed_methods, reason = "tests run on real time")]
fn cancel(bench: &Bench, run: &str, marker: &Marker) {
    let called = Instant::now();
    let cancel = bench.spawn(["cancel", run]);
    marker.wait_until_gone(GONE_WITHIN.saturating_sub(called.elapsed()));
    let cancelled = cancel.finish();
    assert_eq!(cancelled.code(), 0, "{}", cancelled.stderr);
    assert!(cancelled.stderr.contains("no process of it lives"), "{}", cancelled.stderr);
}

/// The run is aborted, and nothing that anybody does later changes that.
#[track_caller]
fn check_aborted(bench: &Bench, run: &str, args: &[String]) {
    let log = bench.check_ended(run);
    let last = &log[log.len() - 1].json;
    assert_eq!((&last["type"], &last["code"]), (&"RUN_ERROR".into(), &"aborted".into()), "{last}");
    let record = bench.record(run);
    assert_eq!(record["status"], "aborted");
    assert_eq!(record["endReason"], "cancelled");
    let logs = bench.outlast(["logs", "--json", run]).ok();

    let attached = bench.outlast(["attach", "--json", run]);
    assert_eq!((attached.code(), &attached.stdout), (ABORTED, &logs), "{}", attached.stderr);
    let again = bench.outlast(args);
    assert_eq!((again.code(), &again.stdout), (ABORTED, &logs), "{}", again.stderr);
    let cancelled = bench.outlast(["cancel", run]);
    assert_eq!(cancelled.code(), 0, "{}", cancelled.stderr);
    assert!(cancelled.stderr.contains("already ended (aborted)"), "{}", cancelled.stderr);

    assert_eq!(bench.record(run), record, "nothing has changed");
    assert_eq!(bench.outlast(["logs", "--json", run]).ok(), logs, "nothing has been written");
}

/// Whether the machine grants this fence to this user. Where it does not, that is said.
fn is_granted(bench: &Bench, fence: &str, user: &str) -> bool {
    let tried = bench.outlast(["run", "--run-id", "probe", "--", "true"]);
    if tried.code() == 0 {
        let kind = bench.fence("probe");
        assert!(fence == "auto" || kind == fence.replace('-', "_"), "asked for {fence}, got {kind}");
        eprintln!("fence {fence} as {user}: {kind}");
        return true;
    }
    assert!(matches!(fence, "pid-namespace" | "cgroup"), "{fence} is to be had everywhere: {}", tried.stderr);
    eprintln!("SKIPPED fence {fence} as {user}: {}", tried.stdout.trim());
    false
}

/// What became of the driver before the cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Driver {
    Alive,
    Killed,
    Frozen,
}

/// Does the same under every fence, as root and as an ordinary user, at the same time: they mostly wait for the grace
/// that a process that ignores SIGTERM is given.
fn under_every_fence(driver: Driver) {
    let ordinary = Ordinary::new();
    // Longer than it would leave time for: who cancels must not wait for a frozen driver before they kill.
    let lease = if driver == Driver::Frozen { "6s" } else { "1500ms" };
    std::thread::scope(|scope| {
        for fence in ["auto", "pid-namespace", "cgroup", "subreaper"] {
            for user in [None, ordinary.as_ref()] {
                scope.spawn(move || {
                    let bench = match user {
                        None => Bench::with_config(&with_lease(fence, lease)),
                        Some(ordinary) => ordinary.bench(&with_lease(fence, lease)),
                    };
                    let user = if user.is_some() { "an ordinary user" } else { "who runs the tests" };
                    if is_granted(&bench, fence, user) {
                        eprintln!("cancelled under {fence} as {user}, driver {driver:?}");
                        tree_is_gone(&bench, driver);
                    }
                });
            }
        }
    });
}

fn tree_is_gone(bench: &Bench, state: Driver) {
    let marker = Marker::new("cancelled");
    let args = run_args(bench, "r", &stubborn_agent(&marker));
    let mut driver = bench.spawn(&args);
    driver.wait_for("up");
    wait_for_tree(&marker);
    let mut driver = Some(driver);
    match state {
        Driver::Alive => {}
        Driver::Killed => driver.take().expect("driver").kill9(),
        Driver::Frozen => {
            freeze(bench, driver.as_ref().expect("driver"), false);
        }
    }
    cancel(bench, "r", &marker);
    let logs = bench.outlast(["logs", "--json", "r"]).ok();
    let record = bench.record("r");
    if let Some(driver) = driver {
        if state == Driver::Frozen {
            driver.signal(Signal::CONT);
        }
        let ended = driver.finish();
        assert_eq!(ended.code(), ABORTED, "it ends as a reader of an aborted run: {}", ended.stderr);
        assert_eq!(ended.stdout, logs, "it has read every event once");
    }
    assert_eq!(bench.outlast(["logs", "--json", "r"]).ok(), logs);
    assert_eq!(bench.record("r"), record);
    check_aborted(bench, "r", &args);
    assert_eq!(marker.alive(), [], "nothing has come back");
}

/// Freezes a driver inside of a transaction, or between two.
fn freeze(bench: &Bench, driver: &Proc, inside: bool) {
    let path = bench.data_dir().join("outlast.db");
    eventually("frozen", || {
        driver.signal(Signal::STOP);
        eventually("stopped", || is_stopped(driver.pid()).then_some(()));
        let connection = rusqlite::Connection::open(&path).expect("open");
        let locked = connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_err();
        if locked != inside {
            driver.signal(Signal::CONT);
        }
        (locked == inside).then_some(())
    });
}

#[test]
fn the_whole_tree_is_gone_in_time() {
    under_every_fence(Driver::Alive);
}

#[test]
fn the_same_when_the_driver_was_killed() {
    under_every_fence(Driver::Killed);
}

#[test]
fn the_same_when_the_driver_is_frozen() {
    under_every_fence(Driver::Frozen);
}

#[test]
fn the_same_when_it_is_frozen_inside_a_transaction() {
    let bench = Bench::new();
    let marker = Marker::new("inside");
    let script = "while :; do echo line; sleep 0.005; done";
    let args = run_args(&bench, "r", &["sh", "-c", script, &marker.0].map(str::to_owned));
    let mut driver = bench.spawn(&args);
    driver.wait_for("line");
    freeze(&bench, &driver, true);
    cancel(&bench, "r", &marker);
    driver.signal(Signal::CONT);
    assert_eq!(driver.finish().code(), ABORTED);
    check_aborted(&bench, "r", &args);
}

#[test]
fn a_detached_run_that_nobody_drives() {
    let bench = Bench::new();
    let marker = Marker::new("detached");
    let mut args = run_args(&bench, "r", &stubborn_agent(&marker));
    args.insert(1, "-d".to_owned());
    assert_eq!(bench.outlast(&args).code(), 0);
    wait_for_tree(&marker);
    assert_eq!(bench.record("r")["driver"], Value::Null);
    cancel(&bench, "r", &marker);
    args.remove(1);
    check_aborted(&bench, "r", &args);
}

/// How often an agent was started in the bench's workspace.
fn starts(workspace: &Path) -> usize {
    fs::read_to_string(workspace.join("starts")).map_or(0, |text| text.lines().count())
}

#[test]
fn before_the_launch_and_around_it() {
    let before =
        ["accept.after", "ensure.bind.before", "ensure.bind.after", "ensure.created", "launch.before"];
    let after = ["launch.after", "launched.before", "launched.after"];
    std::thread::scope(|scope| {
        for action in ["stop", "kill"] {
            for (points, started) in [(&before[..], false), (&after[..], true)] {
                scope
                    .spawn(move || points.iter().for_each(|point| around_the_launch(point, action, started)));
            }
        }
    });
}

fn around_the_launch(point: &str, action: &str, started: bool) {
    eprintln!("cancelled after {action} at {point}");
    let bench = Bench::new();
    let marker = Marker::new("launch");
    let mut agent = numbered_agent(10_000, "0.1", 0).to_vec();
    agent.push(marker.0.clone());
    let args = run_args(&bench, "r", &agent);
    let mut command = bench.command(&args);
    command.env("OUTLAST_FAILPOINT", format!("{point}={action}"));
    let mut driver = Proc::new(command.spawn().expect("spawn"));
    eventually("the driver is at the point", || {
        (is_stopped(driver.pid()) || driver.has_ended()).then_some(())
    });
    if started {
        eventually("the agent works", || (starts(&bench.workspace()) == 1).then_some(()));
    }
    cancel(&bench, "r", &marker);
    let logs = bench.outlast(["logs", "--json", "r"]).ok();
    if action == "stop" {
        driver.signal(Signal::CONT);
        let thawed = driver.finish();
        assert_eq!(thawed.code(), ABORTED, "{point}: {}", thawed.stderr);
        assert_eq!(thawed.stdout, logs, "{point}: it has written nothing and read everything");
    } else {
        assert_eq!(driver.finish().code(), 137);
    }
    check_aborted(&bench, "r", &args);
    assert_eq!(starts(&bench.workspace()), usize::from(started), "{point}: agents started");
    assert_eq!(marker.alive(), [], "{point}");
}

#[test]
fn the_canceller_is_killed_at_every_step() {
    // The driver is killed first, so that the canceller has to do everything itself.
    let launched = [
        "cancel.before",
        "cancel.after",
        "claim.before",
        "claim.after",
        "kill.before",
        "kill.after",
        "append.before",
        "finish.before",
        "finish.after",
    ];
    let unlaunched = ["cancel.before", "cancel.after", "claim.after", "cancel.latch.before", "finish.before"];
    std::thread::scope(|scope| {
        for second in ["cancel", "attach"] {
            scope.spawn(move || launched.iter().for_each(|point| canceller_killed(point, second, true)));
            scope.spawn(move || unlaunched.iter().for_each(|point| canceller_killed(point, second, false)));
        }
    });
}

fn canceller_killed(point: &str, second: &str, launched: bool) {
    eprintln!("canceller killed at {point}, then {second}, launched: {launched}");
    let bench = Bench::new();
    let marker = Marker::new("canceller");
    // One last line that only the canceller can bring into the log.
    let script = "echo start >> starts; trap 'echo bye; exit 0' TERM; while :; do sleep 0.05; done";
    let agent = ["sh", "-c", script, &marker.0].map(str::to_owned);
    let args = run_args(&bench, "r", &agent);
    let mut command = bench.command(&args);
    let step = if launched { "launched.after=kill" } else { "launch.before=kill" };
    command.env("OUTLAST_FAILPOINT", step);
    assert_eq!(Proc::new(command.spawn().expect("spawn")).finish().code(), 137);
    if launched {
        eventually("the agent works", || (starts(&bench.workspace()) == 1).then_some(()));
    }

    let mut command = bench.command(["cancel", "r"]);
    command.env("OUTLAST_FAILPOINT", format!("{point}=kill"));
    let killed = Proc::new(command.spawn().expect("spawn")).finish();
    assert_eq!(killed.code(), 137, "{point} was passed: {}", killed.stderr);

    if point == "cancel.before" {
        assert_eq!(bench.record("r")["cancelRequested"], Value::Null, "a wish that was not recorded is none");
        if second == "attach" {
            return cancel(&bench, "r", &marker);
        }
    } else {
        assert_eq!(bench.record("r")["cancelRequested"]["reason"], "user", "{point}: the wish is durable");
    }
    let ended = bench.outlast([second, "r"]);
    let expected = if second == "cancel" { 0 } else { ABORTED };
    assert_eq!(ended.code(), expected, "{point}: {}", ended.stderr);
    assert_eq!(marker.alive(), [], "{point}: nothing of it lives once the run has ended");
    check_aborted(&bench, "r", &args);
    assert_eq!(starts(&bench.workspace()), usize::from(launched), "{point}: agents started");
}

#[test]
fn racing_with_the_agents_own_end() {
    let winners: Vec<String> = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..4u64)
            .map(|part| {
                // From long before the agent's end to after it.
                scope.spawn(move || (0..6u64).map(|n| race(n * 100 + part * 25)).collect::<Vec<_>>())
            })
            .collect();
        parts.into_iter().flat_map(|part| part.join().expect("part")).collect()
    });
    eprintln!("winners: {winners:?}");
    assert!(winners.iter().any(|winner| winner == "aborted"), "the earliest cancel wins");
}

/// Cancels so many milliseconds after the agent's start, whose agent works for a third of a second. The status that won.
#[allow(clippy::disallowed_methods, reason = "tests run on real time")]
fn race(delay: u64) -> String {
    let bench = Bench::new();
    let command = ["sh", "-c", "echo working; sleep 0.3; echo done"].map(str::to_owned);
    let args = run_args(&bench, "r", &command);
    let mut driver = bench.spawn(&args);
    driver.wait_for("working");
    std::thread::sleep(Duration::from_millis(delay));
    let cancelled = bench.outlast(["cancel", "r"]);
    assert_eq!(cancelled.code(), 0, "{}", cancelled.stderr);
    let driver = driver.finish();
    let log = bench.check_ended("r");
    let record = bench.record("r");
    let status = record["status"].as_str().expect("status").to_owned();
    let says_over = cancelled.stderr.contains("already ended");
    let code = match status.as_str() {
        "completed" => {
            assert!(cancelled.stderr.contains("already ended (completed)"), "{}", cancelled.stderr);
            assert_eq!(Bench::text(&log), "working\ndone\n");
            assert_eq!(record["cancelRequested"], Value::Null, "{record}");
            0
        }
        "aborted" => {
            assert!(!says_over, "{}", cancelled.stderr);
            assert_eq!(record["cancelRequested"]["reason"], "user", "{record}");
            ABORTED
        }
        other => panic!("{other}: {record}"),
    };
    assert_eq!(driver.code(), code, "{status}: {}", driver.stderr);
    let logs = bench.outlast(["logs", "--json", "r"]).ok();
    assert_eq!(driver.stdout, logs);
    let attached = bench.outlast(["attach", "--json", "r"]);
    assert_eq!((attached.code(), attached.stdout), (code, logs));
    assert_eq!(bench.outlast(["cancel", "r"]).code(), 0);
    assert_eq!(bench.record("r"), record, "the winner stays");
    status
}

#[test]
fn a_sibling_is_not_harmed() {
    let bench = Bench::new();
    let (marker, sibling) = (Marker::new("stopped"), Marker::new("sibling"));
    let mut stopped = bench.spawn(run_args(&bench, "stopped", &stubborn_agent(&marker)));
    stopped.wait_for("up");
    wait_for_tree(&marker);
    let script = "tail -f /dev/null \"$0\" > /dev/null 2>&1 & \
                  while [ ! -e go ]; do sleep 0.02; done; kill $! && echo done";
    let own = bench.path().join("work2");
    fs::create_dir(&own).expect("directory");
    let command = ["sh", "-c", script, &sibling.0].map(str::to_owned);
    let mut args = run_args(&bench, "sibling", &command);
    let workspace = args.iter().position(|arg| arg == "--workspace").expect("argument") + 1;
    args[workspace] = own.to_str().expect("utf-8").to_owned();
    fs::write(own.join(&sibling.0), "").expect("file");
    let running = bench.spawn(&args);
    eventually("the sibling works", || (sibling.alive().len() == 2).then_some(()));
    cancel(&bench, "stopped", &marker);
    assert_eq!(sibling.alive().len(), 2, "nothing of the sibling was killed");
    fs::write(own.join("go"), "").expect("file");
    let ended = running.finish();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    assert_eq!(Bench::text(&bench.check_ended("sibling")), "done\n");
    assert_eq!(stopped.finish().code(), ABORTED);
}

#[test]
fn a_recycled_pid_is_never_killed() {
    for fence in ["pid-namespace", "subreaper"] {
        let bench = Bench::with_config(&config(fence));
        if !is_granted(&bench, fence, "who runs the tests") {
            continue;
        }
        let marker = Marker::new("recycled");
        let args = run_args(&bench, "r", &["sleep".to_owned(), "600".to_owned()]);
        let driver = bench.spawn(&args);
        let shim = eventually("the shim", || bench.latch("r").and_then(|_| bench.shim("r")));
        driver.kill9();
        kill9(shim);
        eventually("the shim is gone", || bench.shim("r").is_none().then_some(()));
        // Somebody else has the pids of the latch now.
        let mut stranger = std::process::Command::new("tail");
        stranger.args(["-f", "/dev/null", "--retry"]).arg(&marker.0);
        stranger.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let stranger = Proc::new(stranger.spawn().expect("spawn"));
        let path = bench.run_file("r", ".start").expect("latch");
        let mut latch = bench.latch("r").expect("latch");
        latch["shim"]["pid"] = stranger.pid().into();
        let who = if fence == "subreaper" { "agent" } else { "init" };
        latch["fence"][who]["pid"] = stranger.pid().into();
        fs::write(path, latch.to_string()).expect("write");
        let cancelled = bench.outlast(["cancel", "r"]);
        assert_eq!(marker.alive().len(), 1, "{fence}: the stranger lives");
        if fence == "subreaper" {
            assert_eq!(cancelled.code(), 1, "without its shim nobody can verify that the tree is gone");
            assert!(cancelled.stderr.contains("could not be verified"), "{}", cancelled.stderr);
            let record = bench.record("r");
            assert_eq!(record["endReason"], "cancelled_unverified", "the record says so: {record}");
            assert_eq!(record["status"], "aborted");
        } else {
            assert_eq!(cancelled.code(), 0, "{}", cancelled.stderr);
            check_aborted(&bench, "r", &args);
        }
        stranger.kill9();
    }
}

#[test]
fn two_cancels_at_once() {
    let bench = Bench::new();
    let marker = Marker::new("twice");
    let args = run_args(&bench, "r", &stubborn_agent(&marker));
    let mut driver = bench.spawn(&args);
    driver.wait_for("up");
    wait_for_tree(&marker);
    driver.kill9();
    let both = [bench.spawn(["cancel", "r"]), bench.spawn(["cancel", "r"])];
    marker.wait_until_gone(GONE_WITHIN);
    for cancelled in both.map(Proc::finish) {
        assert_eq!(cancelled.code(), 0, "{}", cancelled.stderr);
    }
    check_aborted(&bench, "r", &args);
}

#[test]
fn of_a_run_that_has_ended_or_never_was() {
    let bench = Bench::new();
    let args = run_args(&bench, "r", &numbered_agent(3, "0.01", 4));
    assert_eq!(bench.outlast(&args).code(), 4);
    let record = bench.record("r");
    let cancelled = bench.outlast(["cancel", "r"]);
    assert_eq!(cancelled.code(), 0, "{}", cancelled.stderr);
    assert!(cancelled.stderr.contains("already ended (failed)"), "{}", cancelled.stderr);
    assert_eq!(bench.record("r"), record);
    assert_eq!(Bench::text(&bench.check_ended("r")), numbered_text(3));

    let unknown: Finished = bench.outlast(["cancel", "nobody"]);
    assert_eq!(unknown.code(), 1);
    assert!(unknown.stderr.contains("there is no run \"nobody\""), "{}", unknown.stderr);
}
