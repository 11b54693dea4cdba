//! Those who watch a run: any number of them, from any offset, none in the way of another.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};

use outlast::Seq;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{
    Bench, Proc, eventually, gated_agent, gated_script, is_stopped, numbered_text, parse_stream,
};

/// A lease that outlasts every test: whoever waits for its end instead of being served fails.
const LONG_LEASE: &str = "[driver]\nlease = \"300s\"\n";

/// What is stored, as it is printed.
#[track_caller]
fn stored(bench: &Bench) -> String {
    bench.outlast(["logs", "--json", "r"]).ok()
}

#[test]
fn two_attached_see_the_same_log_and_one_drives() {
    let bench = Bench::with_config(LONG_LEASE);
    bench.start_waiting(200);
    let mut viewers = [bench.spawn(["attach", "--json", "r"]), bench.spawn(["attach", "--json", "r"])];
    viewers.iter_mut().for_each(|viewer| viewer.wait_for("line 2"));
    assert!(bench.record("r")["driver"]["owner"].is_string());
    bench.open_gate();
    let [one, other] = viewers.map(Proc::finish);
    assert_eq!((one.code(), other.code()), (7, 7), "{} {}", one.stderr, other.stderr);
    let log = stored(&bench);
    assert_eq!(one.stdout, log);
    assert_eq!(other.stdout, log);
    assert_eq!(Bench::text(&bench.check_ended("r")), numbered_text(200));
    assert_eq!(bench.record("r")["driverEpoch"], 2, "claimed at accept, and by one of the two");
}

#[test]
fn the_one_that_stays_sees_the_rest() {
    for leave in [Signal::INT, Signal::KILL] {
        let bench = Bench::with_config(LONG_LEASE);
        bench.start_waiting(40);
        let first = bench.spawn(["attach", "--json", "r"]);
        eventually("the first drives", || bench.record("r")["driver"].is_object().then_some(()));
        let mut second = bench.spawn(["attach", "--json", "r"]);
        second.wait_for("line 2");
        first.signal(leave);
        first.finish();
        bench.open_gate();
        let second = second.finish();
        assert_eq!(second.code(), 7, "{leave:?}: {}", second.stderr);
        assert_eq!(second.stdout, stored(&bench), "{leave:?}");
        assert_eq!(Bench::text(&bench.check_ended("r")), numbered_text(40), "{leave:?}");
    }
}

#[test]
fn from_an_offset_exactly_what_comes_after_it() {
    let bench = Bench::new();
    bench.start_waiting(20);
    bench.open_gate();
    assert_eq!(bench.outlast(["attach", "r"]).code(), 7);
    let log = stored(&bench);
    let lines: Vec<&str> = log.split_inclusive('\n').collect();
    let after = |seen: usize| lines[seen..].concat();
    let offset = |seen: usize| parse_stream(lines[seen - 1])[0].seq.offset();
    for (from, expected) in [
        ("-1".to_owned(), after(0)),
        (offset(1), after(1)),
        (offset(lines.len() / 2), after(lines.len() / 2)),
        (offset(lines.len() - 1), after(lines.len() - 1)),
        (offset(lines.len()), String::new()),
        ("now".to_owned(), String::new()),
        (Seq::START.offset(), after(0)),
    ] {
        let attached = bench.outlast(["attach", "--json", "--from", &from, "r"]);
        assert_eq!(attached.stdout, expected, "from {from}");
        assert_eq!(attached.code(), 7, "from {from}: {}", attached.stderr);
    }
}

#[test]
fn from_an_offset_of_a_live_run() {
    let bench = Bench::new();
    let ticks = "i=0; while [ ! -e stop ]; do echo \"tick $i\"; i=$((i+1)); sleep 0.02; done";
    let mut driver = bench.spawn(bench.run_args("r", &[], &gated_script(ticks)));
    bench.open_gate();
    driver.wait_for("tick 3");
    let before = bench.log("r");
    let tail = before[before.len() - 1].seq;
    let mut from_now = bench.spawn(["attach", "--json", "--from", "now", "r"]);
    let mut from_tail = bench.spawn(["attach", "--json", "--from", &tail.offset(), "r"]);
    from_now.wait_for("tick");
    from_tail.wait_for("tick");
    std::fs::write(bench.workspace().join("stop"), "").expect("stop");
    let (from_now, from_tail) =
        (parse_stream(&from_now.finish().ok()), parse_stream(&from_tail.finish().ok()));
    driver.finish().ok();
    let log = bench.check_ended("r");
    assert_eq!(from_tail, log[before.len()..], "everything after the offset");
    let first = from_now[0].seq;
    assert!(first > tail, "nothing of what was stored before: {first:?} {tail:?}");
    assert_eq!(from_now, log[usize::try_from(first.0 - 1).expect("fits")..], "from then on everything");
}

#[test]
fn offsets_that_are_none() {
    let bench = Bench::new();
    bench.start_waiting(4);
    let malformed =
        ["", "42", "bad", "-2", "0", "000000000000001", "00000000000000001", "+000000000000001", "Now"];
    for from in malformed.iter().copied().chain([" 0000000000000001", "1e3", "18446744073709551616", "é"]) {
        let attached = bench.outlast(["attach", "--json", "--from", from, "r"]);
        assert_eq!(attached.code(), 2, "{from:?}: {}", attached.stderr);
        assert_eq!(attached.failure().0, "offset_malformed", "{from:?}");
        assert_eq!(attached.stdout, "", "{from:?}");
    }
    for from in ["0000000000000900", "9999999999999999"] {
        let attached = bench.outlast(["attach", "--json", "--from", from, "r"]);
        assert_eq!(attached.code(), 125, "{from}: {}", attached.stderr);
        assert_eq!(attached.failure().0, "offset_ahead", "{from}");
        assert_eq!(attached.stdout, "", "{from}");
    }
    let record = bench.record("r");
    assert_eq!(record["driver"], Value::Null, "a refused viewer drives nothing: {record}");
    assert!(record["detachedSince"].is_u64(), "and watches nothing: {record}");
    bench.open_gate();
    assert_eq!(bench.outlast(["attach", "r"]).code(), 7);
    let past_the_end = bench.outlast(["attach", "--json", "--from", "0000000000000900", "r"]);
    assert_eq!(past_the_end.failure().0, "offset_ahead", "also once the run has ended");
}

/// Whether the process is within a commit: it holds the lock that SQLite's writers take.
fn is_within_a_commit(pid: i32) -> bool {
    let locks = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).expect("fdinfo").flatten();
    let mut locks = locks.filter_map(|fd| std::fs::read_to_string(fd.path()).ok());
    locks.any(|text| text.lines().any(|line| line.contains(" WRITE ") && line.ends_with(" 120 120")))
}

/// Stops the process within a commit, or outside of one.
pub fn stop(proc: &Proc, within_a_commit: bool) {
    eventually("stopped at such a moment", || {
        proc.signal(Signal::STOP);
        eventually("stopped", || is_stopped(proc.pid()).then_some(()));
        if is_within_a_commit(proc.pid()) == within_a_commit {
            return Some(());
        }
        proc.signal(Signal::CONT);
        None
    });
}

/// Says a line again and again until the test says stop.
const TICKS: &str =
    "i=0; while [ -e starts ] && [ ! -e stop ]; do echo \"tick $i\"; i=$((i+1)); sleep 0.01; done; exit 7";

#[test]
fn stopped_within_a_commit_it_stops_nobody_else() {
    let bench = Bench::new();
    let driver = bench.spawn(bench.run_args("r", &[], &gated_script(TICKS)));
    bench.open_gate();
    eventually("it works", || (bench.starts() == 1).then_some(()));
    stop(&driver, true);
    std::fs::write(bench.workspace().join("stop"), "").expect("stop");
    let successor = bench.outlast(["attach", "--json", "r"]);
    assert_eq!(successor.code(), 7, "{}", successor.stderr);
    bench.check_ended("r");
    driver.signal(Signal::CONT);
    let driver = driver.finish();
    assert_eq!(driver.code(), 7, "{}", driver.stderr);
    assert_eq!((driver.stdout, successor.stdout), (stored(&bench), stored(&bench)));
}

#[test]
fn a_stopped_reader_slows_nobody_and_misses_nothing() {
    let bench = Bench::with_config(LONG_LEASE);
    let mut driver = bench.spawn(bench.run_args("r", &[], &gated_agent(3, 1500, 7)));
    driver.wait_for("line 2");
    let mut reader = bench.spawn(["attach", "--json", "r"]);
    reader.wait_for("line 2");
    stop(&reader, false);
    bench.open_gate();
    assert_eq!(driver.finish().code(), 7);
    assert!(is_stopped(reader.pid()), "the run has ended meanwhile");
    assert_eq!(Bench::text(&bench.check_ended("r")), numbered_text(1500));
    reader.signal(Signal::CONT);
    let reader = reader.finish();
    assert_eq!(reader.code(), 7, "{}", reader.stderr);
    assert_eq!(reader.stdout, stored(&bench));
}

/// Far more than a pipe holds.
const MUCH: &str = "yes \"$(head -c 999 /dev/zero | tr '\\0' x)\" | head -n 2000; exit 7";

/// Says so, and goes on until the test says stop.
const AT_WORK: &str = "echo all of it; while [ -e starts ] && [ ! -e stop ]; do sleep 0.05; done; exit 7";

/// Started, and nobody reads what it prints until it is waited for.
fn unread(mut command: Command) -> Child {
    command.spawn().expect("spawn")
}

#[track_caller]
fn drained(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().expect("output");
    (output.status.code(), String::from_utf8(output.stdout).expect("utf-8"))
}

#[test]
fn a_reader_that_nobody_drains_slows_nobody_and_misses_nothing() {
    let bench = Bench::with_config(LONG_LEASE);
    let driver = bench.spawn(bench.run_args("r", &[], &gated_script(MUCH)));
    eventually("a driver", || bench.status("r").map(drop));
    let reader = unread(bench.command(["attach", "--json", "r"]));
    bench.open_gate();
    assert_eq!(driver.finish().code(), 7);
    bench.check_ended("r");
    assert_eq!(drained(reader), (Some(7), stored(&bench)));
}

#[test]
fn a_driver_whose_output_nobody_drains_goes_on_driving() {
    let bench = Bench::with_config(LONG_LEASE);
    let driver = unread(bench.command(bench.run_args("r", &[], &gated_script(MUCH))));
    eventually("a driver", || bench.status("r").map(drop));
    let reader = bench.spawn(["attach", "--json", "r"]);
    bench.open_gate();
    let reader = reader.finish();
    assert_eq!(reader.code(), 7, "{}", reader.stderr);
    bench.check_ended("r");
    assert_eq!(reader.stdout, stored(&bench));
    assert_eq!(drained(driver), (Some(7), stored(&bench)));
}

/// The stream is held up, not the viewer: it leaves when it is told to.
#[test]
fn a_viewer_whose_output_nobody_drains_can_leave() {
    let bench = Bench::with_config(LONG_LEASE);
    let driver =
        unread(bench.command(bench.run_args("r", &[], &gated_script(&format!("({MUCH}); {AT_WORK}")))));
    eventually("a driver", || bench.status("r").map(drop));
    bench.open_gate();
    let mut reader = bench.spawn(["attach", "--json", "r"]);
    reader.wait_for("all of it");
    let pid = rustix::process::Pid::from_child(&driver);
    rustix::process::kill_process(pid, Signal::INT).expect("signal");
    let mut driver = driver;
    let status = eventually("it has left", || driver.try_wait().expect("wait"));
    assert_eq!(status.code(), Some(130));
    assert_eq!(bench.record("r")["detachedSince"], Value::Null, "the other watches");
    std::fs::write(bench.workspace().join("stop"), "").expect("stop");
    let reader = reader.finish();
    assert_eq!(reader.code(), 7, "the other drives: {}", reader.stderr);
    assert_eq!(reader.stdout, stored(&bench));
    bench.check_ended("r");
}

#[test]
fn closing_the_pipe_detaches_and_harms_nothing() {
    let bench = Bench::with_config(LONG_LEASE);
    let agent =
        gated_script("i=0; while [ ! -e stop ]; do echo \"tick $i\"; i=$((i+1)); sleep 0.02; done; exit 7");
    bench.outlast(bench.run_args("r", &["-d"], &agent)).ok();
    bench.open_gate();
    let mut attached = bench.command(["attach", "--json", "r"]).spawn().expect("spawn");
    let mut first = String::new();
    BufReader::new(attached.stdout.take().expect("stdout")).read_line(&mut first).expect("line");
    assert!(first.contains("run.accepted"), "{first}");
    // The reader's end is closed now; the next event cannot be written.
    let ended = attached.wait_with_output().expect("output");
    assert_eq!(ended.status.code(), Some(141), "as a program that a closed pipe ends");
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert!(stderr.contains("outlast attach r") && !stderr.contains("panic"), "{stderr}");

    let script = format!("{} attach --json r | head -n 1", env!("CARGO_BIN_EXE_outlast"));
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).env("OUTLAST_DATA_DIR", bench.data_dir()).current_dir(bench.path());
    let piped = shell.output().expect("sh");
    assert_eq!(String::from_utf8_lossy(&piped.stdout), first);

    let record = bench.record("r");
    assert_eq!(record["status"], "running");
    assert_eq!(record["driver"], Value::Null, "the claim was given back");
    assert!(record["detachedSince"].is_u64());
    std::fs::write(bench.workspace().join("stop"), "").expect("stop");
    let last = bench.outlast(["attach", "--json", "r"]);
    assert_eq!(last.code(), 7, "{}", last.stderr);
    assert_eq!(last.stdout, stored(&bench));
    bench.check_ended("r");
}

#[test]
fn an_ended_run_is_replayed_with_its_status() {
    let bench = Bench::new();
    bench.start_waiting(6);
    bench.open_gate();
    assert_eq!(bench.outlast(["attach", "r"]).code(), 7);
    let record = bench.record("r");
    for _ in 0..2 {
        let replayed = bench.outlast(["attach", "--json", "r"]);
        assert_eq!(replayed.code(), 7);
        assert_eq!(replayed.stdout, stored(&bench));
    }
    assert_eq!(bench.record("r"), record, "looking changes nothing");
}

#[test]
fn logs_shows_what_is_stored_and_does_not_follow() {
    let bench = Bench::with_config(LONG_LEASE);
    bench.start_waiting(5);
    let left = bench.outlast(["logs", "r"]);
    assert!(left.stderr.contains("working, nobody attached: outlast attach r"), "{}", left.stderr);
    assert_eq!(left.ok(), "", "nobody has brought anything into the log yet");
    let mut driver = bench.spawn(["attach", "--json", "r"]);
    driver.wait_for("line 2");
    let text = bench.outlast(["logs", "r"]);
    assert_eq!(text.ok(), "line 0\nline 1\nline 2\n");
    assert_eq!(stored(&bench), driver.stdout());
    assert_eq!(bench.record("r")["status"], "running");
    bench.open_gate();
    assert_eq!(driver.finish().code(), 7);
}

#[test]
fn presence_says_whether_anybody_watches() {
    let bench = Bench::new();
    bench.start_waiting(5);
    let detached = |record: &Value| record["detachedSince"].as_u64();
    let since_accept = detached(&bench.record("r")).expect("nobody has watched yet");
    assert_eq!(Some(since_accept), bench.record("r")["startedAt"].as_u64(), "since it was accepted");

    let first = bench.spawn(["attach", "--json", "r"]);
    eventually("watched", || detached(&bench.record("r")).is_none().then_some(()));
    let mut second = bench.spawn(["attach", "--json", "r"]);
    second.wait_for("line 2");
    first.signal(Signal::INT);
    assert_eq!(first.finish().code(), 130);
    assert_eq!(detached(&bench.record("r")), None, "the second watches");
    second.signal(Signal::TERM);
    assert_eq!(second.finish().code(), 143);
    let since_left = detached(&bench.record("r")).expect("nobody is left");
    assert!(since_left >= since_accept, "{since_left} {since_accept}");

    bench.open_gate();
    assert_eq!(bench.outlast(["attach", "r"]).code(), 7);
    assert_eq!(bench.record("r")["detachedSince"], Value::Null, "an ended run is not detached");
}

/// Takes as long as a presence lasts that nobody renews.
#[test]
fn a_killed_viewer_is_counted_no_longer_than_its_presence() {
    let bench = Bench::new();
    bench.start_waiting(5);
    let mut viewer = bench.spawn(["attach", "--json", "r"]);
    viewer.wait_for("line 2");
    assert_eq!(bench.record("r")["detachedSince"], Value::Null);
    viewer.kill9();
    eventually("its presence has run out", || bench.record("r")["detachedSince"].as_u64());
    bench.open_gate();
    assert_eq!(bench.outlast(["attach", "r"]).code(), 7);
}

#[test]
fn detached_from_the_start() {
    let bench = Bench::with_config(LONG_LEASE);
    let started = bench.outlast(["run", "-d", "--run-id", "plain", "--", "sh", "-c", "exec sleep 600"]);
    assert!(started.stderr.contains("outlast attach plain"), "{}", started.stderr);
    assert_eq!(started.ok(), "plain\n", "the id and nothing else");
    let record = bench.record("plain");
    assert_eq!(record["driver"], Value::Null, "no driver, and the claim is given back: {record}");
    assert_eq!(record["phase"], "launched", "but the agent works");
    assert_eq!(record["probe"]["state"], "producing");
    assert!(record["detachedSince"].is_u64());

    let minted = bench.outlast(["run", "-d", "--json", "--", "true"]);
    let said: Value = serde_json::from_str(&minted.ok()).expect("json");
    let run = said["runId"].as_str().expect("an id");
    assert_eq!(said["threadId"], bench.record(run)["threadId"]);
    bench.outlast(["cancel", "plain"]).ok();
}
