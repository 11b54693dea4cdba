//! Journals that nobody needs any more, in sandboxes that live on.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Bench, Proc, eventually, gated_agent, is_stopped, numbered_agent};

/// `outlast run` on the thread whose sandbox all these runs share.
fn args(bench: &Bench, run: &str, agent: &[String]) -> Vec<String> {
    let workspace = bench.workspace();
    let workspace = workspace.to_str().expect("utf-8");
    let args = ["run", "--json", "--run-id", run, "--thread", "t", "--workspace", workspace, "do it", "--"];
    args.iter().map(|arg| (*arg).to_owned()).chain(agent.iter().cloned()).collect()
}

/// A run that has ended.
fn ended(bench: &Bench, run: &str) {
    let agent = ["sh", "-c", "echo one; echo two >&2; exit 3"].map(str::to_owned);
    assert_eq!(bench.outlast(args(bench, run, &agent)).code(), 3);
}

/// The sandbox's runs directory.
fn runs_dir(bench: &Bench, run: &str) -> PathBuf {
    bench.run_file(run, ".start").and_then(|path| path.parent().map(PathBuf::from)).expect("a latch")
}

/// The suffixes of the run's files that are there.
fn left(bench: &Bench, run: &str) -> BTreeSet<String> {
    let all = outlast::core::journal::files::ALL;
    all.iter()
        .filter(|suffix| bench.run_file(run, suffix).is_some())
        .map(|suffix| (*suffix).to_owned())
        .collect()
}

fn only_the_latch() -> BTreeSet<String> {
    BTreeSet::from([".start".to_owned()])
}

#[track_caller]
fn prune(bench: &Bench, more: &[&str]) -> Value {
    let finished = bench.outlast(["prune", "--json"].iter().chain(more));
    serde_json::from_str(&finished.ok()).expect("a result")
}

/// What stays, as (run or name, reason).
fn kept(result: &Value) -> BTreeSet<(String, String)> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let entries = result["kept"].as_array().expect("kept");
    let of = |entry: &Value| {
        if entry["runId"].is_null() { text(&entry["names"][0]) } else { text(&entry["runId"]) }
    };
    entries.iter().map(|entry| (of(entry), text(&entry["reason"]))).collect()
}

fn pairs(expected: &[(&str, &str)]) -> BTreeSet<(String, String)> {
    expected.iter().map(|(of, why)| ((*of).to_owned(), (*why).to_owned())).collect()
}

#[test]
fn what_is_proven_useless_goes_and_nothing_else() {
    let bench = Bench::new();
    for run in ["done", "it's done", "unsealed"] {
        ended(&bench, run);
    }
    let database = rusqlite::Connection::open(bench.data_dir().join("outlast.db")).expect("the database");
    let changed =
        database.execute("UPDATE runs SET sealed = 0 WHERE run_id = 'unsealed'", []).expect("update");
    assert_eq!(changed, 1);
    // A pause, as a person's approval will be one: the run goes on from its journal.
    bench.outlast(["run", "--run-id", "paused", "--thread", "p", "--", "true"]).ok();
    let sql = "UPDATE runs SET status = 'interrupted', finished_at = NULL WHERE run_id = 'paused'";
    assert_eq!(database.execute(sql, []).expect("update"), 1);
    drop(database);
    // A run whose agent has ended and whose driver died before it knew: its journal is the only copy.
    let mut driver = bench.spawn(args(&bench, "uncollected", &gated_agent(3, 6, 0)));
    driver.wait_for("line 2");
    driver.kill9();
    bench.open_gate();
    eventually("the agent has ended", || bench.shim("uncollected").is_none().then_some(()));
    let dir = runs_dir(&bench, "done");
    assert_eq!(dir, runs_dir(&bench, "uncollected"), "one sandbox");
    fs::write(dir.join("young.ndjson"), "x").expect("file");
    fs::write(dir.join("not a run's"), "x").expect("file");
    for name in ["old.ndjson", "old.err"] {
        fs::write(dir.join(name), "x").expect("file");
        let touched = Command::new("touch").args(["-d", "2 hours ago"]).arg(dir.join(name)).status();
        assert!(touched.expect("touch").success());
    }
    let shown = |run: &str| {
        let of = |args: &[&str]| bench.outlast(args.iter().chain(&[run])).ok();
        (of(&["show", "--json"]), of(&["show", "--json", "--messages"]), of(&["logs", "--json"]))
    };
    let before = ["done", "it's done", "unsealed"].map(shown);

    let dry = prune(&bench, &["--dry-run"]);
    assert_eq!(left(&bench, "done").len(), 5, "a dry run deletes nothing");
    let result = prune(&bench, &[]);
    assert_eq!(result, dry, "and tells the same");
    assert_eq!(result["deleted"], serde_json::json!(["done", "it's done", "old"]));
    assert_eq!(
        kept(&result),
        pairs(&[
            ("unsealed", "unsealed"),
            ("paused", "non-terminal"),
            ("uncollected", "non-terminal"),
            ("young", "orphan-too-recent"),
            ("not a run's", "undecodable-name"),
        ])
    );
    assert_eq!((&result["ageGate"], &result["failures"]), (&"available".into(), &serde_json::json!([])));
    assert_eq!(left(&bench, "done"), only_the_latch());
    assert_eq!(left(&bench, "it's done"), only_the_latch());
    assert!(dir.join("young.ndjson").exists() && dir.join("not a run's").exists());
    assert!(!dir.join("old.ndjson").exists() && !dir.join("old.err").exists());
    assert_eq!(
        ["done", "it's done", "unsealed"].map(shown),
        before,
        "record, transcript and log are what they were"
    );
    let (code, message) = bench.outlast(["verify", "--json", "done"]).failure();
    assert_eq!(code, "sandbox_gone");
    assert!(message.contains("pruned"), "{message}");

    // What was kept is whole: the run is collected, and then its journal goes too.
    bench.outlast(["attach", "uncollected"]).ok();
    bench.outlast(["verify", "uncollected"]).ok();
    let result = prune(&bench, &["--orphan-ttl", "0s"]);
    assert_eq!(result["deleted"], serde_json::json!(["uncollected", "young"]));
    let kept_for_good =
        [("paused", "non-terminal"), ("unsealed", "unsealed"), ("not a run's", "undecodable-name")];
    assert_eq!(kept(&result), pairs(&kept_for_good));
}

#[test]
fn a_live_run_keeps_its_journal_and_the_next_turn_works() {
    let bench = Bench::new();
    ended(&bench, "first");
    let mut driver = bench.spawn(args(&bench, "live", &gated_agent(3, 6, 0)));
    driver.wait_for("line 2");
    let finished = bench.outlast(["prune"]);
    assert_eq!(finished.code(), 0, "{}", finished.stderr);
    assert!(finished.stdout.contains("deleted: 1: first"), "{}", finished.stdout);
    assert!(finished.stdout.contains("kept (non-terminal): 1: live"), "{}", finished.stdout);
    assert!(finished.stderr.contains("the journals of 1 run deleted, 1 kept"), "{}", finished.stderr);
    bench.open_gate();
    assert_eq!(driver.finish().code(), 0);
    bench.check_ended("live");
    bench.outlast(["verify", "live"]).ok();
    ended(&bench, "third");
    assert_eq!(prune(&bench, &[])["deleted"], serde_json::json!(["live", "third"]));
    bench.check_ended("first");
}

/// A shim that lives on after its run was ended without it holds its lock, whatever the store says.
#[test]
fn not_under_a_shim_that_the_store_takes_for_ended() {
    let bench = Bench::new();
    ended(&bench, "done");
    let mut driver = bench.spawn(args(&bench, "r", &gated_agent(3, 6, 0)));
    driver.wait_for("line 2");
    driver.kill9();
    let database = rusqlite::Connection::open(bench.data_dir().join("outlast.db")).expect("the database");
    let sql = "UPDATE runs SET status = 'failed', sealed = 1, finished_at = started_at WHERE run_id = 'r'";
    assert_eq!(database.execute(sql, []).expect("update"), 1);
    drop(database);
    for more in [&["--dry-run"][..], &[]] {
        let result = prune(&bench, more);
        assert_eq!(
            (&result["deleted"], kept(&result)),
            (&serde_json::json!(["done"]), pairs(&[("r", "live")]))
        );
    }
    assert_eq!(left(&bench, "r").len(), 5);
    bench.open_gate();
    eventually("the shim has left", || bench.shim("r").is_none().then_some(()));
    assert_eq!(prune(&bench, &[])["deleted"], serde_json::json!(["r"]));
}

#[test]
fn the_rest_goes_next_time_and_young_ones_are_kept() {
    let bench = Bench::with_config("[retention]\nkeep_journals = \"1h\"\n");
    for run in ["a", "b", "c"] {
        ended(&bench, run);
    }
    assert_eq!(kept(&prune(&bench, &[])), pairs(&[("a", "kept"), ("b", "kept"), ("c", "kept")]));
    let database = rusqlite::Connection::open(bench.data_dir().join("outlast.db")).expect("the database");
    let sql = "UPDATE runs SET finished_at = finished_at - 3700000 WHERE run_id <> 'c'";
    assert_eq!(database.execute(sql, []).expect("update"), 2);
    drop(database);
    let result = prune(&bench, &["--max-deletes", "1"]);
    assert_eq!(result["deleted"], serde_json::json!(["a"]));
    assert_eq!(kept(&result), pairs(&[("b", "max-deletes"), ("c", "max-deletes")]));
    let result = prune(&bench, &["--max-deletes", "1"]);
    assert_eq!(result["deleted"], serde_json::json!(["b"]));
    assert_eq!(kept(&result), pairs(&[("c", "max-deletes")]));
    let result = prune(&bench, &["--max-deletes", "1"]);
    assert_eq!((&result["deleted"], kept(&result)), (&serde_json::json!([]), pairs(&[("c", "kept")])));
}

#[test]
fn what_fails_is_told_and_the_rest_is_done() {
    let bench = Bench::new();
    for run in ["a", "b", "c"] {
        ended(&bench, run);
    }
    let journal = bench.run_file("b", ".ndjson").expect("a journal");
    fs::remove_file(&journal).expect("removed");
    fs::create_dir(&journal).expect("what cannot be deleted like a file");
    let finished = bench.outlast(["prune", "--json"]);
    assert_eq!(finished.code(), 1);
    let result: Value = serde_json::from_str(&finished.stdout).expect("a result");
    assert_eq!(result["deleted"], serde_json::json!(["a", "c"]));
    assert_eq!(kept(&result), pairs(&[("b", "delete-failed")]));
    let failure = &result["failures"][0];
    assert_eq!((&failure["stage"], &failure["runId"]), (&"delete".into(), &"b".into()), "{failure}");
    let finished = bench.outlast(["prune"]);
    assert_eq!(finished.code(), 1);
    assert!(
        finished.stderr.contains("run b: ") && finished.stderr.contains("1 failure"),
        "{}",
        finished.stderr
    );
    // A sandbox that has vanished is no empty one.
    fs::remove_dir_all(runs_dir(&bench, "a")).expect("removed");
    let finished = bench.outlast(["prune", "--json"]);
    let result: Value = serde_json::from_str(&finished.stdout).expect("a result");
    assert_eq!((finished.code(), &result["failures"][0]["stage"]), (1, &"list".into()));
    assert_eq!((&result["listed"], &result["ageGate"]), (&0.into(), &"unavailable".into()));
}

/// Older versions did not record whose a sandbox is. Where the store finds no run, that is no proof then.
#[test]
fn a_sandbox_of_an_older_version_keeps_what_the_store_does_not_know() {
    let bench = Bench::new();
    ended(&bench, "done");
    let dir = runs_dir(&bench, "done");
    fs::write(dir.join("old.ndjson"), "x").expect("file");
    let database = rusqlite::Connection::open(bench.data_dir().join("outlast.db")).expect("the database");
    let sql = "UPDATE instances SET thread_id = NULL, tenant = 'somebody'";
    assert_eq!(database.execute(sql, []).expect("update"), 1);
    drop(database);
    let result = prune(&bench, &["--orphan-ttl", "0s"]);
    assert_eq!(result["deleted"], serde_json::json!(["done"]));
    assert_eq!(kept(&result), pairs(&[("old", "store-error")]));
    assert_eq!(result["failures"], serde_json::json!([]));
}

/// Killed in the middle of a deletion: whatever is left, the next one finishes, and nobody takes a part for the whole.
#[test]
fn killed_at_every_step_and_pruned_again() {
    for step in
        ["prune.run@2", "prune.latched", "prune.journal", "prune.output", "prune.prompts", "prune.prompts@2"]
    {
        let bench = Bench::new();
        for run in ["a", "b"] {
            ended(&bench, run);
        }
        let log = bench.log("a");
        let mut command = bench.command(["prune", "--json"]);
        command.env("OUTLAST_FAILPOINT", format!("{step}=kill"));
        let killed = Proc::new(command.spawn().expect("spawn")).finish();
        assert_eq!(killed.stdout, "", "{step}: killed");
        for run in ["a", "b"] {
            let whole = left(&bench, run).len() == 5;
            let verified = bench.outlast(["verify", "--json", run]);
            if whole {
                assert_eq!(verified.code(), 0, "{step}: {run} is whole: {}", verified.stderr);
            } else {
                assert_eq!(verified.failure().0, "sandbox_gone", "{step}: {run}");
            }
        }
        let result = prune(&bench, &[]);
        assert_eq!(result["failures"], serde_json::json!([]), "{step}");
        assert_eq!((left(&bench, "a"), left(&bench, "b")), (only_the_latch(), only_the_latch()), "{step}");
        let dir = runs_dir(&bench, "a");
        let prompts = dir.parent().expect("instance").join("prompts");
        assert_eq!(fs::read_dir(prompts).expect("prompts").count(), 0, "{step}");
        assert_eq!(prune(&bench, &[])["listed"], 0, "{step}");
        assert_eq!(bench.log("a"), log, "{step}");
        ended(&bench, "next");
    }
}

/// A host that was frozen right before it started a shim thaws when its run has ended and its journal is gone. The store
/// refused nothing: it had been asked before. The latch does.
#[test]
fn a_launch_that_thaws_after_the_pruning_starts_nothing() {
    let bench = Bench::new();
    let agent = numbered_agent(3, "0.01", 7);
    let mut command = bench.command(args(&bench, "r", &agent));
    command.env("OUTLAST_FAILPOINT", "launch.before=stop");
    let frozen = Proc::new(command.spawn().expect("spawn"));
    eventually("frozen", || is_stopped(frozen.pid()).then_some(()));
    assert_eq!(bench.outlast(["attach", "r"]).code(), 7);
    assert_eq!(prune(&bench, &[])["deleted"], serde_json::json!(["r"]));
    assert_eq!(left(&bench, "r"), only_the_latch());
    let (record, log) = (bench.record("r"), bench.log("r"));
    frozen.signal(Signal::CONT);
    assert_eq!(frozen.finish().code(), 7);
    assert_eq!((bench.record("r"), bench.log("r")), (record, log));
    assert_eq!(bench.starts(), 1, "one agent");
    // Its shim may still be on its way; the lock that it makes is found and goes as well.
    eventually("the late shim has left", || bench.shims().is_empty().then_some(()));
    assert_eq!(bench.starts(), 1, "one agent");
    prune(&bench, &[]);
    assert_eq!(left(&bench, "r"), only_the_latch());
}
