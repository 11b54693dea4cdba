//! The log against the journal that it was made from.

use std::fs;
use std::path::PathBuf;

use crate::support::{Bench, eventually};

/// The journal of the run, wherever its sandbox is.
fn journal(bench: &Bench, run: &str) -> PathBuf {
    let sandboxes = fs::read_dir(bench.data_dir().join("sandboxes")).expect("sandboxes");
    sandboxes
        .map(|entry| entry.expect("entry").path().join(format!("runs/{run}.ndjson")))
        .find(|path| path.exists())
        .expect("a journal")
}

/// A run of a command, driven to its end.
fn ended(bench: &Bench, run: &str) {
    let agent = ["sh", "-c", "echo one; echo two >&2; echo three; exit 3"].map(str::to_owned);
    assert_eq!(bench.outlast(bench.run_args(run, &[], &agent)).code(), 3);
}

#[test]
fn an_ended_run_is_the_translation_of_its_journal() {
    let bench = Bench::new();
    ended(&bench, "r");
    let report: serde_json::Value =
        serde_json::from_str(&bench.outlast(["verify", "--json", "r"]).ok()).expect("json");
    assert_eq!(report["whole"], true);
    let events =
        report["journalEvents"].as_u64().expect("number") + report["hostEvents"].as_u64().expect("number");
    assert_eq!(events, bench.log("r").len() as u64, "every event was looked at");
    assert!(bench.outlast(["verify", "r"]).stderr.contains("is the translation of its journal"));
    let (code, _) = bench.outlast(["verify", "--json", "none"]).failure();
    assert_eq!(code, "run_not_found");
}

#[test]
fn a_run_that_was_taken_over_is_and_so_is_one_that_lives() {
    let bench = Bench::new();
    let mut driver = bench.spawn(bench.run_args("r", &[], &crate::support::gated_agent(3, 6, 0)));
    driver.wait_for("line 2");
    driver.kill9();
    let report: serde_json::Value =
        serde_json::from_str(&bench.outlast(["verify", "--json", "r"]).ok()).expect("json");
    assert_eq!((&report["whole"], &report["status"]), (&false.into(), &"running".into()));
    bench.open_gate();
    bench.outlast(["attach", "r"]).ok();
    let report: serde_json::Value =
        serde_json::from_str(&bench.outlast(["verify", "--json", "r"]).ok()).expect("json");
    assert_eq!(report["whole"], true);
}

#[test]
fn a_journal_that_was_changed_is_told_and_nothing_is_written() {
    let bench = Bench::new();
    ended(&bench, "r");
    let (record, log) = (bench.record("r"), bench.log("r"));
    let path = journal(&bench, "r");
    let text = fs::read_to_string(&path).expect("text");
    for (changed, what) in
        [(text.replace("three", "throe"), "another line"), (text.replacen("one\n", "", 1), "a line less")]
    {
        fs::write(&path, changed).expect("written");
        let (code, message) = bench.outlast(["verify", "--json", "r"]).failure();
        assert_eq!(code, "replay_diverged", "{what}");
        assert!(message.contains("journal event"), "{what}: {message}");
    }
    assert_eq!((bench.record("r"), bench.log("r")), (record, log));
    fs::write(&path, text).expect("written");
    bench.outlast(["verify", "r"]).ok();
}

/// What the log was made from is gone in part: what is stored stays, and the run is ended as one that nobody can trust.
#[test]
fn a_journal_that_became_shorter_ends_the_run() {
    let bench = Bench::new();
    let mut driver = bench.spawn(bench.run_args("r", &[], &crate::support::gated_agent(3, 6, 0)));
    driver.wait_for("line 2");
    driver.kill9();
    let before = bench.log("r");
    let path = journal(&bench, "r");
    let file = fs::File::options().write(true).open(&path).expect("journal");
    file.set_len(4).expect("shorter");
    bench.outlast(["attach", "r"]);
    let record = bench.record("r");
    assert_eq!(record["status"], "failed");
    assert_eq!(
        (&record["error"]["code"], &record["endReason"]),
        (&"replay_diverged".into(), &"replay_diverged".into())
    );
    let log = bench.log("r");
    assert_eq!(log[..before.len()], before[..], "what was stored stays");
    assert_eq!(log.last().expect("events").json["code"], "replay_diverged");
    eventually("the agent is gone", || bench.shims().is_empty().then_some(()));
}
