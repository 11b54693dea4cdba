//! The sweep itself dies at any step: whoever sweeps next brings everything to the same end, once.

use std::collections::BTreeSet;

use rustix::process::Signal;
use serde_json::Value;

use super::{leave, reap, until_detached_for, until_ended};
use crate::support::{Bench, Proc, eventually, is_stopped, numbered_text};

/// Sandboxes that are due as soon as their run has ended.
const CONFIG: &str = "[driver]\nlease = \"400ms\"\n[sandbox]\nreuse = \"none\"\n";

/// One run whose agent has ended, and one whose time is up.
fn two_runs() -> Bench {
    let bench = Bench::with_config(CONFIG);
    leave(&bench, "done", &[], "for i in 0 1 2; do echo line $i; done; exit 3");
    leave(&bench, "late", &["--detach-ttl", "1ms"], "echo up; sleep 1000");
    until_ended(&bench, "done");
    until_detached_for(&bench, "late", std::time::Duration::from_millis(10));
    eventually("its first line", || {
        let journal = bench.run_file("late", ".ndjson")?;
        std::fs::metadata(journal).is_ok_and(|file| file.len() > 0).then_some(())
    });
    bench
}

/// The points that a sweep passes.
fn points() -> BTreeSet<String> {
    let bench = two_runs();
    let log = bench.path().join("points");
    let mut command = bench.command(["reap", "--json"]);
    command.env("OUTLAST_FAILPOINT_LOG", &log);
    Proc::new(command.spawn().expect("spawn")).finish().ok();
    check(&bench);
    std::fs::read_to_string(&log).expect("points").lines().map(str::to_owned).collect()
}

#[track_caller]
fn check(bench: &Bench) {
    assert_eq!(Bench::text(&bench.check_ended("done")), numbered_text(3));
    let late = bench.check_ended("late");
    assert_eq!(
        (Bench::text(&late).as_str(), &late[late.len() - 1].json["code"]),
        ("up\n", &"expired".into())
    );
    let sandboxes: Value =
        serde_json::from_str(&bench.outlast(["sandbox", "ls", "--json"]).ok()).expect("json");
    assert_eq!(sandboxes, serde_json::json!([]));
    assert_eq!(bench.shims(), []);
    let left = std::fs::read_dir(bench.data_dir().join("sandboxes")).expect("sandboxes").flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).filter(|name| name != ".machine").collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The steps at which to strike.
fn steps() -> Vec<String> {
    let points = points();
    for needed in
        ["reap.claim.before", "reap.cancel.after", "reclaim.begin.after", "reclaim.destroyed", "finish.after"]
    {
        assert!(points.contains(needed), "{needed} in {points:?}");
    }
    points.into_iter().collect()
}

/// Strikes at every step, two at a time: they mostly wait.
fn at_every_step(strike: fn(&str)) {
    let steps = steps();
    let (one, other) = steps.split_at(steps.len() / 2);
    std::thread::scope(|scope| {
        for half in [one, other] {
            scope.spawn(move || half.iter().for_each(|point| strike(point)));
        }
    });
}

#[test]
fn killed_at_every_step() {
    at_every_step(killed_at);
}

#[test]
fn frozen_at_every_step() {
    at_every_step(frozen_at);
}

/// Sweeps and destroys what is due until both runs have ended.
fn until_ended_by_another(bench: &Bench, point: &str) {
    eventually(&format!("both have ended after {point}"), || {
        let result = bench.outlast(["reap", "--json", "--run-budget", "500ms"]);
        let result: Value = serde_json::from_str(&result.stdout).expect("a result");
        assert!(result["error"].is_null(), "{result}");
        bench.outlast(["reclaim", "--json"]);
        let ended = |run: &str| bench.status(run).is_some_and(|status| status != "running");
        (ended("done") && ended("late")).then_some(())
    });
}

fn frozen_at(point: &str) {
    let bench = two_runs();
    let mut command = bench.command(["reap", "--json"]);
    command.env("OUTLAST_FAILPOINT", format!("{point}=stop"));
    let frozen = Proc::new(command.spawn().expect("spawn"));
    eventually("it is frozen", || is_stopped(frozen.pid()).then_some(()));
    until_ended_by_another(&bench, point);
    frozen.signal(Signal::CONT);
    // It changes nothing any more, but may still finish what nobody else could: a sandbox that it was destroying.
    drop(frozen.finish());
    eventually(&format!("the sandboxes are gone after {point}"), || {
        bench.outlast(["reclaim", "--json"]);
        (bench.outlast(["sandbox", "ls", "--json"]).ok().trim() == "[]").then_some(())
    });
    check(&bench);
}

fn killed_at(point: &str) {
    let bench = two_runs();
    let mut command = bench.command(["reap", "--json"]);
    command.env("OUTLAST_FAILPOINT", format!("{point}=kill"));
    let killed = Proc::new(command.spawn().expect("spawn")).finish();
    assert_eq!(killed.status.code(), None, "{point}: {}", killed.stdout);
    until_ended_by_another(&bench, point);
    eventually(&format!("the sandboxes are gone after {point}"), || {
        bench.outlast(["reclaim", "--json"]);
        (bench.outlast(["sandbox", "ls", "--json"]).ok().trim() == "[]").then_some(())
    });
    check(&bench);
    assert_eq!(reap(&bench, &[])["considered"], 0);
}
