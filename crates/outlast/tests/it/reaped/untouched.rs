//! What works, and what cannot be told, is left exactly as it is.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use super::{entry, leave, reap};
use crate::support::{Bench, eventually};

/// Everything that there is of a run: its record but for what says what time it is, its log, and its files.
fn snapshot(bench: &Bench, run: &str) -> (Value, String, BTreeMap<String, Vec<u8>>) {
    let journal = bench.run_file(run, ".ndjson").expect("a journal");
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(journal.parent().expect("runs")).expect("runs").flatten() {
        files.insert(entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).expect("file"));
    }
    let mut record = bench.record(run);
    record.as_object_mut().expect("a record").remove("probe");
    (record, bench.outlast(["logs", "--json", run]).ok(), files)
}

fn until_up(bench: &Bench, run: &str) {
    eventually("its first line", || {
        let journal = bench.run_file(run, ".ndjson")?;
        fs::metadata(journal).is_ok_and(|file| file.len() > 0).then_some(())
    });
}

#[test]
fn an_agent_that_works() {
    let bench = Bench::new();
    leave(&bench, "r", &[], "echo up; echo '{\"__exit\":0}'; sleep 1000");
    until_up(&bench, "r");
    let before = snapshot(&bench, "r");
    assert!(before.0["detachedSince"].is_u64());
    for _ in 0..3 {
        let result = reap(&bench, &[]);
        assert_eq!(entry(&result, "r")["outcome"], "producing");
    }
    assert_eq!(snapshot(&bench, "r"), before);
}

/// A sandbox that does not answer, with the cause.
#[test]
fn a_sandbox_that_cannot_tell() {
    let Some(ordinary) = crate::support::Ordinary::new() else { return };
    let bench = ordinary.bench("[driver]\nlease = \"1500ms\"\n");
    leave(&bench, "r", &[], "echo up; sleep 1000");
    until_up(&bench, "r");
    let before = snapshot(&bench, "r");
    let exit = bench.run_file("r", ".exit").expect("exit file");
    let mode = fs::metadata(&exit).expect("exit file").permissions();
    fs::set_permissions(&exit, PermissionsExt::from_mode(0o000)).expect("chmod");
    let result = reap(&bench, &[]);
    let swept = entry(&result, "r");
    assert_eq!(swept["outcome"], "unknown", "{swept}");
    assert!(swept["error"]["message"].as_str().expect("a cause").contains("denied"), "{swept}");
    fs::set_permissions(&exit, mode).expect("chmod");
    assert_eq!(snapshot(&bench, "r"), before);
}

/// A run that is watched is none of the sweep's business.
#[test]
fn a_run_that_somebody_watches() {
    let bench = Bench::new();
    let mut viewer =
        bench.spawn(["run", "--run-id", "r", "--detach-ttl", "1ms", "--", "sh", "-c", "echo up; sleep 1000"]);
    viewer.wait_for("up");
    let result = reap(&bench, &["--ttl", "1ms"]);
    assert_eq!(result["considered"], 0, "{result}");
    assert_eq!(bench.record("r")["cancelRequested"], Value::Null);
    bench.outlast(["cancel", "r"]).ok();
    assert!(Path::new(&bench.data_dir()).exists());
}

/// A run that was never launched: whoever comes first launches it; a sweep does not.
#[test]
fn wrong_usage() {
    let bench = Bench::new();
    for (flags, says) in [
        (vec!["--max-runs", "0"], "at least 1"),
        (vec!["--ttl", "5"], "unit"),
        (vec!["--run-budget", "soon"], "unit"),
    ] {
        let mut args = vec!["reap"];
        args.extend(&flags);
        let refused = bench.outlast(args);
        assert_eq!(refused.code(), 2, "{flags:?}");
        assert!(refused.stderr.contains(says), "{flags:?}: {}", refused.stderr);
    }
}
