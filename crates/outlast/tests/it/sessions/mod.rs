//! What lasts of threads: ledgers, bodies, snapshots, and their ends.

mod bodies;
mod buckets;
mod crashed;
mod deleted;
mod ledger;
mod served;
mod workspaces;

use serde_json::Value;

use crate::support::Bench;

/// What a command prints as JSON.
#[track_caller]
fn json(bench: &Bench, args: &[&str]) -> Value {
    let printed = bench.outlast(args.iter().chain(&["--json"])).ok();
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
}

/// A run of this script on the thread, to its end.
#[track_caller]
fn run(bench: &Bench, run: &str, thread: &str, script: &str) -> String {
    bench.outlast(["run", "--run-id", run, "--thread", thread, "--", "sh", "-c", script]).ok()
}

/// Destroys the sandbox of the thread.
#[track_caller]
fn destroy_sandbox(bench: &Bench, thread: &str) {
    let all = json(bench, &["sandbox", "ls"]);
    let mut found = all.as_array().expect("sandboxes").iter().filter(|one| one["threadId"] == thread);
    let id = found.next().expect("a sandbox")["instanceId"].as_str().expect("id").to_owned();
    bench.outlast(["sandbox", "rm", &id]).ok();
}

/// The keys of all objects beneath this prefix, in the data directory.
fn objects(bench: &Bench, prefix: &str) -> Vec<String> {
    fn walk(dir: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                walk(&entry.path(), found);
            } else {
                found.push(entry.path());
            }
        }
    }
    let root = bench.data_dir().join("objects");
    let mut found = Vec::new();
    walk(&root.join(prefix), &mut found);
    let relative =
        |path: std::path::PathBuf| path.strip_prefix(&root).expect("beneath").display().to_string();
    let mut keys: Vec<String> = found.into_iter().map(relative).collect();
    keys.sort();
    keys
}
