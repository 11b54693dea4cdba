//! Killed at any step of what is done for sessions and workspaces, somebody else brings it to the same end.

use std::collections::BTreeSet;

use super::{destroy_sandbox, json, objects, run};
use crate::support::{Bench, Proc};

const LARGE: &str = "echo one > a; head -c 700000 /dev/zero | tr '\\0' x; echo";
const CONFIG: &str = "[driver]\nlease = \"400ms\"\n";

/// The points that a command passes.
fn points(bench: &Bench, args: &[&str]) -> Vec<String> {
    let log = bench.path().join("points");
    let mut command = bench.command(args);
    command.env("OUTLAST_FAILPOINT_LOG", &log);
    Proc::new(command.spawn().expect("spawn")).finish();
    let text = std::fs::read_to_string(&log).expect("points");
    text.lines().map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
}

#[track_caller]
fn kill_at(bench: &Bench, point: &str, args: &[&str]) {
    let mut command = bench.command(args);
    command.env("OUTLAST_FAILPOINT", format!("{point}=kill"));
    let killed = Proc::new(command.spawn().expect("spawn")).finish();
    assert_eq!(killed.code(), 137, "{point}: {killed:?}");
}

#[track_caller]
fn needs(points: &[String], needed: &[&str]) {
    for point in needed {
        assert!(points.iter().any(|known| known == point), "{point} in {points:?}");
    }
}

/// A run that is killed between its end and its snapshot: the snapshot is made before the sandbox goes.
#[test]
fn after_a_run() {
    let make = |bench: &Bench| {
        run(bench, "r1", "t", "echo one > a");
    };
    let second = ["run", "--run-id", "r2", "--thread", "t", "--", "sh", "-c", "echo two > a"];
    let known = {
        let bench = Bench::with_config(CONFIG);
        make(&bench);
        points(&bench, &second)
    };
    needs(&known, &["finish.after", "checkpoint.pinned", "checkpoint.stored", "checkpoint.recorded"]);
    let after = ["finish.after", "checkpoint.pinned", "checkpoint.stored", "checkpoint.recorded"];
    for point in after {
        let bench = Bench::with_config(CONFIG);
        make(&bench);
        kill_at(&bench, point, &second);
        assert_eq!(bench.status("r2").as_deref(), Some("completed"), "{point}");
        destroy_sandbox(&bench, "t");
        assert_eq!(run(&bench, "r3", "t", "cat a"), "two\n", "{point}");
    }
}

/// A run that is killed while its workspace is restored: whoever takes it over launches it in the whole workspace.
#[test]
fn while_a_workspace_is_restored() {
    let make = |bench: &Bench| {
        run(bench, "r1", "t", "for i in 1 2 3; do echo $i > $i; done");
        destroy_sandbox(bench, "t");
    };
    let second = ["run", "--run-id", "r2", "--thread", "t", "--", "sh", "-c", "cat 1 2 3"];
    let known = {
        let bench = Bench::with_config(CONFIG);
        make(&bench);
        points(&bench, &second)
    };
    let steps = ["ensure.created", "restore.done", "restore.recorded", "ensure.restored"];
    needs(&known, &steps);
    for point in steps {
        let bench = Bench::with_config(CONFIG);
        make(&bench);
        kill_at(&bench, point, &second);
        bench.outlast(["attach", "r2"]).ok();
        assert_eq!(Bench::text(&bench.check_ended("r2")), "1\n2\n3\n", "{point}");
        let restored = json(&bench, &["session", "show", "t"]);
        assert_eq!(restored["checkpoints"], 2, "{point}: {restored}");
    }
}

/// A collection that is killed anywhere: the next one finishes, and nothing that is in use is gone.
#[test]
fn while_bodies_are_collected() {
    let make = |bench: &Bench| {
        run(bench, "r", "t", LARGE);
        let id = json(bench, &["session", "show", "t"])["sessionId"].as_str().expect("id").to_owned();
        for n in 0..3 {
            let orphan = format!("objects/sessions/{id}/blobs/{}", format!("{n:02x}").repeat(32));
            std::fs::write(bench.data_dir().join(orphan), "left behind").expect("written");
        }
    };
    let collect = ["session", "gc", "t", "--grace", "0s"];
    let known = {
        let bench = Bench::with_config(CONFIG);
        make(&bench);
        points(&bench, &collect)
    };
    needs(&known, &["gc.barrier.after", "gc.scanned", "gc.listed", "gc.condemned", "gc.delete.before"]);
    for point in known.iter().filter(|point| point.starts_with("gc.")) {
        for nth in if point == "gc.delete.before" { 1..=3 } else { 1..=1 } {
            let bench = Bench::with_config(CONFIG);
            make(&bench);
            kill_at(&bench, &format!("{point}@{nth}"), &collect);
            let result = json(&bench, &collect);
            assert_eq!(result["referenced"], 2, "{point}: {result}");
            assert_eq!(objects(&bench, "sessions").len(), 2, "{point}");
            bench.check_ended("r");
        }
    }
}

/// A deletion that is killed anywhere is finished by the next attempt, and nothing begins in between.
#[test]
fn while_a_session_is_deleted() {
    let make = |bench: &Bench| {
        run(bench, "r", "t", LARGE);
        run(bench, "s", "t", "echo more");
    };
    let remove = ["session", "rm", "t", "--yes"];
    let known = {
        let bench = Bench::with_config(CONFIG);
        make(&bench);
        points(&bench, &remove)
    };
    let steps: Vec<&String> = known.iter().filter(|point| point.starts_with("delete.")).collect();
    needs(&known, &["delete.tombstone.after", "delete.rows", "delete.object", "delete.ended"]);
    for point in steps {
        let bench = Bench::with_config(CONFIG);
        make(&bench);
        kill_at(&bench, point, &remove);
        let begun = point != "delete.tombstone.before";
        let (code, _) = match begun {
            true => bench.outlast(["run", "--json", "--thread", "t", "--", "true"]).failure(),
            false => ("session_deleted".to_owned(), String::new()),
        };
        assert_eq!(code, "session_deleted", "{point}");
        bench.outlast(remove).ok();
        assert_eq!(objects(&bench, "sessions"), [""; 0], "{point}");
        for run in ["r", "s"] {
            assert_eq!(bench.outlast(["show", run]).code(), 1, "{point}");
        }
        assert_eq!(bench.outlast(["doctor"]).code(), 0, "{point}");
    }
}
