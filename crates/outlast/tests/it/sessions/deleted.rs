//! The end of a session.

use super::{json, objects, run};
use crate::support::Bench;

const LARGE: &str = "echo x > file; head -c 700000 /dev/zero | tr '\\0' x; echo";

/// Everything of it goes, its thread does not begin again, and nothing of others is touched.
#[test]
fn all_of_it_goes() {
    let bench = Bench::new();
    run(&bench, "r", "t", LARGE);
    run(&bench, "other", "u", LARGE);
    let kept = json(&bench, &["session", "show", "u", "--messages"]);
    let asked = bench.outlast(["session", "rm", "t"]);
    assert_eq!(asked.code(), 2);
    assert!(asked.stderr.contains("--yes"), "{}", asked.stderr);
    let id = json(&bench, &["session", "show", "t"])["sessionId"].as_str().expect("id").to_owned();
    let deleted = json(&bench, &["session", "rm", &id, "--yes"]);
    assert_eq!(
        (&deleted["threadId"], &deleted["runs"], &deleted["objects"]),
        (&"t".into(), &1.into(), &2.into())
    );
    assert_eq!(deleted["sandboxes"], 1);
    assert_eq!(objects(&bench, &format!("sessions/{id}")), [""; 0]);
    assert_eq!(bench.outlast(["show", "r"]).code(), 1);
    let (code, _) = bench.outlast(["session", "show", "t", "--json"]).failure();
    assert_eq!(code, "session_deleted");
    let (code, message) = bench.outlast(["run", "--json", "--thread", "t", "--", "true"]).failure();
    assert_eq!(code, "session_deleted");
    assert!(message.contains("another thread id"), "{message}");
    let again = json(&bench, &["session", "rm", "t", "--yes"]);
    assert_eq!((&again["runs"], &again["rows"], &again["objects"]), (&0.into(), &0.into(), &0.into()));
    assert_eq!(json(&bench, &["session", "show", "u", "--messages"]), kept);
    let threads = json(&bench, &["session", "ls"]);
    assert_eq!(threads.as_array().expect("list").len(), 1);
    let (code, _) = bench.outlast(["session", "rm", "never", "--yes", "--json"]).failure();
    assert_eq!(code, "session_not_found");
}

/// Threads in which nothing has happened for so long go as a whole, after their events, once their sandboxes are gone.
#[test]
fn after_long_silence() {
    let config = "[driver]\nlease = \"1500ms\"\n[sandbox]\nkeep_alive = \"0s\"\n[retention]\nevents = \"1ms\"\nmessages = \"1ms\"\n";
    let bench = Bench::with_config(config);
    run(&bench, "r", "t", LARGE);
    let dry = json(&bench, &["gc", "--dry-run"]);
    assert_eq!(dry["deletedSessions"], 0, "its sandbox is there");
    bench.outlast(["reclaim"]).ok();
    assert_eq!(json(&bench, &["gc", "--dry-run"])["deletedSessions"], 1);
    let gone = json(&bench, &["gc"]);
    assert_eq!((&gone["deletedSessions"], &gone["records"]), (&1.into(), &1.into()));
    assert_eq!(objects(&bench, "sessions"), [""; 0]);
    assert_eq!(bench.outlast(["show", "r"]).code(), 1);
    let (code, _) = bench.outlast(["run", "--json", "--thread", "t", "--", "true"]).failure();
    assert_eq!(code, "session_deleted");
}
