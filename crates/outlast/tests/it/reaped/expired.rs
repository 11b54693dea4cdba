//! Its time is up.

use std::time::Duration;

use super::{entry, leave, reap, until_detached_for, until_ended};
use crate::support::{Bench, Marker, Ordinary, eventually, stubborn_agent, wait_for_tree};

/// What it wrote until then is delivered, and no process of it lives.
#[test]
fn an_agent_that_works_is_stopped() {
    let bench = Bench::new();
    let marker = Marker::new("overdue");
    let agent = stubborn_agent(&marker);
    let mut args = vec!["run", "-d", "--run-id", "r", "--detach-ttl", "500ms", "--"];
    args.extend(agent.iter().map(String::as_str));
    bench.outlast(args).ok();
    wait_for_tree(&marker);
    until_detached_for(&bench, "r", Duration::from_millis(500));
    let result = reap(&bench, &[]);
    let swept = entry(&result, "r");
    assert_eq!((&swept["outcome"], &swept["status"]), (&"expired".into(), &"aborted".into()));
    assert_eq!(marker.alive(), []);
    let log = bench.check_ended("r");
    assert_eq!(log[log.len() - 1].json["code"], "expired");
    assert!(Bench::text(&log).contains("up"), "what it had said");
    let record = bench.record("r");
    assert_eq!(
        (&record["cancelRequested"]["reason"], &record["endReason"]),
        (&"ttl".into(), &"expired".into())
    );
}

/// The journal decides: what had ended keeps its own end.
#[test]
fn an_agent_that_had_ended_is_completed() {
    let bench = Bench::new();
    leave(&bench, "r", &["--detach-ttl", "1ms"], "echo done");
    until_ended(&bench, "r");
    let result = reap(&bench, &[]);
    let swept = entry(&result, "r");
    assert_eq!((&swept["outcome"], &swept["status"]), (&"expired".into(), &"completed".into()));
    assert_eq!(Bench::text(&bench.check_ended("r")), "done\n");
}

/// `--ttl` and the record's own time, and none at all.
#[test]
fn whose_time_counts() {
    let bench = Bench::with_config("[reap]\ndetached_run_ttl = \"none\"\n[driver]\nlease = \"1500ms\"\n");
    leave(&bench, "for-ever", &[], "sleep 1000");
    leave(&bench, "hour", &["--detach-ttl", "1h"], "sleep 1000");
    assert_eq!(bench.record("for-ever")["detachedTtl"], serde_json::Value::Null);
    let result = reap(&bench, &[]);
    assert_eq!(result["outcomes"]["producing"], 2, "{result}");
    let result = reap(&bench, &["--ttl", "1ms"]);
    assert_eq!(result["outcomes"]["expired"], 2, "{result}");
    for run in ["for-ever", "hour"] {
        assert_eq!(bench.record(run)["error"]["code"], "expired");
    }
}

/// A run that waits for a person is left alone, unless the configuration gives it a time of its own; its end is said to be
/// that its time was up.
#[test]
fn a_run_that_waits_for_a_person() {
    let bench = Bench::new();
    leave(&bench, "r", &["--detach-ttl", "1ms"], "echo up; sleep 1000");
    eventually("its first line", || {
        let journal = bench.run_file("r", ".ndjson")?;
        std::fs::metadata(journal).is_ok_and(|file| file.len() > 0).then_some(())
    });
    let db = rusqlite::Connection::open(bench.data_dir().join("outlast.db")).expect("the database");
    db.execute("UPDATE runs SET status = 'interrupted'", []).expect("updated");
    drop(db);
    assert_eq!(reap(&bench, &[])["considered"], 0);
    assert_eq!(bench.record("r")["status"], "interrupted");
    let config = bench.data_dir().join("outlast.toml");
    std::fs::write(&config, "[driver]\nlease = \"1500ms\"\n[reap]\ninterrupted_ttl = \"1h\"\n")
        .expect("configuration");
    assert_eq!(reap(&bench, &[])["considered"], 0, "not yet");
    std::fs::write(&config, "[driver]\nlease = \"1500ms\"\n[reap]\ninterrupted_ttl = \"1ms\"\n")
        .expect("configuration");
    let result = reap(&bench, &[]);
    assert_eq!(entry(&result, "r")["outcome"], "expired");
    let log = bench.check_ended("r");
    assert_eq!((Bench::text(&log).as_str(), &log[log.len() - 1].json["code"]), ("up\n", &"expired".into()));
    assert_eq!(bench.shims(), []);
}

/// Another process drives it: that one is told, and ends it.
#[test]
fn it_is_driven_by_another_host() {
    let bench = Bench::with_config("[driver]\nlease = \"300s\"\n");
    leave(&bench, "r", &["--detach-ttl", "1ms"], "echo up; sleep 1000");
    // A server drives it, and is no viewer.
    let served = bench.spawn(["serve", "--json", "--listen", "127.0.0.1:0"]);
    let owner = eventually("the server drives it", || {
        let owner = bench.record("r")["driver"]["owner"].as_str().map(str::to_owned);
        owner.or_else(|| (bench.record("r")["status"] != "running").then(String::new))
    });
    let result = reap(&bench, &[]);
    // Its own sweep may have been faster.
    if result["considered"] != 0 {
        let swept = entry(&result, "r");
        assert!(matches!(swept["outcome"].as_str(), Some("expired" | "not-claimed")), "{swept}");
    }
    eventually("its end", || (bench.record("r")["status"] == "aborted").then_some(()));
    let record = bench.record("r");
    assert_eq!(record["error"]["code"], "expired", "by {owner}");
    bench.check_ended("r");
    drop(served);
}

/// Its tree does not die in time, so nobody can say that it is dead: it is ended all the same, and its sandbox, which
/// cannot be destroyed either, is a leak that is seen and tried again.
#[test]
fn a_kill_that_cannot_be_verified() {
    let Some(ordinary) = Ordinary::new() else { return };
    let bench = ordinary.bench("[driver]\nlease = \"1500ms\"\n");
    leave(&bench, "r", &["--detach-ttl", "1ms"], "trap '' TERM; echo up; while :; do sleep 0.05; done");
    eventually("its first line", || {
        let journal = bench.run_file("r", ".ndjson")?;
        std::fs::metadata(journal).is_ok_and(|file| file.len() > 0).then_some(())
    });
    // Another user's file in it: the ordinary user cannot remove what is in there.
    let sandbox = bench
        .run_file("r", ".ndjson")
        .expect("a journal")
        .parent()
        .and_then(|runs| runs.parent())
        .expect("a sandbox")
        .to_owned();
    let foreign = sandbox.join("work/foreign");
    std::fs::create_dir(&foreign).expect("directory");
    std::fs::write(foreign.join("file"), "").expect("file");
    let swept = bench.outlast(["reap", "--json", "--run-budget", "300ms"]);
    assert_eq!(swept.code(), 1, "{}", swept.stderr);
    let result: serde_json::Value = serde_json::from_str(&swept.stdout).expect("a result");
    let swept = entry(&result, "r");
    assert_eq!(
        (&swept["outcome"], &swept["status"]),
        (&"reclaim-failed".into(), &"aborted".into()),
        "{swept}"
    );
    let record = bench.record("r");
    assert_eq!(record["endReason"], "cancelled_unverified");
    assert_eq!(swept["error"]["code"], "sandbox_reclaim_failed");
    assert_eq!(swept["error"]["sandboxKey"], record["sandboxKey"]);
    assert!(bench.outlast(["sandbox", "ls"]).ok().contains("1 failed"));
    eventually("nothing of it lives", || bench.shims().is_empty().then_some(()));
}
