//! What is listed and shown, for programs and for people.

use std::process::Command;

use serde_json::Value;

use crate::support::{Bench, Finished, Proc};

#[test]
fn minted_ids_are_printed_on_standard_error() {
    let bench = Bench::new();
    let first = bench.outlast(["run", "--", "echo", "hi"]);
    let second = bench.outlast(["run", "--", "echo", "hi"]);
    let runs: Value = serde_json::from_str(&bench.outlast(["ps", "-a", "--json"]).ok()).expect("json");
    assert_eq!(runs.as_array().map(Vec::len), Some(2), "two runs: {runs}");
    for run in runs.as_array().expect("an array") {
        let (run, thread) = (run["runId"].as_str().expect("id"), run["threadId"].as_str().expect("id"));
        let says = |finished: &Finished| finished.stderr.contains(run) && finished.stderr.contains(thread);
        assert!(says(&first) != says(&second), "{run} {thread}: {} {}", first.stderr, second.stderr);
    }
    assert_eq!(first.ok(), "hi\n");
}

/// Every name in the JSON of a record.
const FIELDS: &[&str] = &[
    "agent",
    "agentSession",
    "cancelRequested",
    "detachedSince",
    "detachedTtl",
    "driver",
    "driverEpoch",
    "endReason",
    "error",
    "exitCode",
    "finishedAt",
    "instanceId",
    "machine",
    "model",
    "onDisconnect",
    "phase",
    "runId",
    "sandboxKey",
    "sealed",
    "startedAt",
    "status",
    "tail",
    "tenant",
    "threadId",
    "usage",
];

#[test]
fn lists_for_programs_and_for_people() {
    let bench = Bench::new();
    let list = |args: &[&str]| -> Vec<Value> {
        serde_json::from_str(&bench.outlast(args).ok()).expect("one JSON array")
    };
    assert_eq!(list(&["ps", "--json"]), [] as [Value; 0]);
    assert_eq!(list(&["ps", "-a", "--json"]), [] as [Value; 0]);
    let none = bench.outlast(["ps"]);
    assert!(none.stderr.contains("no live runs"), "{}", none.stderr);
    assert_eq!(none.ok(), "");

    assert_eq!(bench.outlast(["run", "--run-id", "failed", "--", "sh", "-c", "exit 3"]).code(), 3);
    bench.start_waiting(5);
    let live = list(&["ps", "--json"]);
    assert_eq!(live.len(), 1, "{live:?}");
    let mut names: Vec<&str> = live[0].as_object().expect("object").keys().map(String::as_str).collect();
    names.retain(|name| *name != "probe");
    assert_eq!(names, FIELDS);
    assert_eq!(live[0]["runId"], "r");
    assert_eq!(live[0]["threadId"], "thread-r");
    assert_eq!(live[0]["status"], "running");
    assert_eq!(live[0]["probe"]["state"], "producing");
    assert_eq!(live[0]["driverEpoch"], 1);

    let all = list(&["ps", "--all", "--json"]);
    assert_eq!(all.len(), 2);
    let failed = all.iter().find(|run| run["runId"] == "failed").expect("the ended one too");
    assert_eq!(failed["status"], "failed");
    assert_eq!(failed["exitCode"], 3);
    assert_eq!(failed["error"]["code"], "agent_failed");
    assert!(failed["error"]["message"].as_str().is_some_and(|text| text.contains('3')), "{failed}");
    assert_eq!(*failed, bench.record("failed"), "show says what ps says");

    let table = bench.outlast(["ps"]).ok();
    let table: Vec<&str> = table.lines().collect();
    assert_eq!(table.len(), 2, "a head and the live run: {table:?}");
    assert!(
        table[0].starts_with("RUN") && table[0].contains("THREAD") && table[0].contains("STATUS"),
        "{table:?}"
    );
    assert!(table[1].starts_with("r ") && table[1].contains("thread-r"), "{table:?}");
    assert!(table[1].contains("working, nobody attached: outlast attach r"), "{table:?}");
    let table = bench.outlast(["ps", "-a"]).ok();
    assert!(table.lines().count() == 3 && table.contains("agent_failed"), "{table}");

    let shown = bench.outlast(["show", "failed"]).ok();
    for part in ["failed", "agent_failed", "status"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    bench.open_gate();
    assert_eq!(bench.outlast(["attach", "r"]).code(), 7);
}

#[test]
fn a_run_that_is_not_there() {
    let bench = Bench::new();
    for (args, status) in [
        (["attach", "--json", "nope"], 125),
        (["show", "--json", "nope"], 1),
        (["logs", "--json", "nope"], 1),
        (["cancel", "--json", "nope"], 1),
    ] {
        let refused = bench.outlast(args);
        assert_eq!(refused.code(), status, "{args:?}: {}", refused.stderr);
        assert_eq!(refused.failure().0, "run_not_found", "{args:?}");
        assert_eq!(refused.stdout, "", "{args:?}");
    }
}

#[test]
fn the_users_message_is_there_from_the_moment_of_accept() {
    let bench = Bench::new();
    let prompt = "please print\nthis – 'exactly'";
    let mut command = bench.command(["run", "--run-id", "r", prompt, "--", "cat"]);
    command.env("OUTLAST_FAILPOINT", "accept.after=kill");
    assert_eq!(Proc::new(command.spawn().expect("spawn")).finish().code(), 137);
    let accepted = bench.messages("r");
    assert_eq!(accepted.len(), 1, "{accepted:?}");
    let text = |n: usize, from: &[outlast::core::transcript::Message]| {
        (from[n].role.as_str(), from[n].content.clone().unwrap_or_default())
    };
    assert_eq!(text(0, &accepted), ("user", prompt.to_owned()));
    bench.outlast(["attach", "r"]).ok();
    let ended = bench.messages("r");
    assert_eq!(ended.len(), 2, "{ended:?}");
    assert_eq!(ended[0], accepted[0]);
    assert_eq!(text(1, &ended), ("assistant", prompt.to_owned()));
    let shown = bench.outlast(["show", "--messages", "r"]).ok();
    assert_eq!(shown, format!("user: {prompt}\n\nassistant: {prompt}\n"));
}

#[test]
fn completions_for_the_usual_shells() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = bench.outlast(["completions", shell]).ok();
        for word in ["attach", "share-workspace", "cancel"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        // Those that are installed here say whether they can read it.
        let file = bench.path().join(shell);
        std::fs::write(&file, script).expect("write");
        if let Ok(checked) = Command::new(shell).arg("-n").arg(&file).output() {
            assert!(checked.status.success(), "{shell}: {}", String::from_utf8_lossy(&checked.stderr));
        }
    }
    let unknown = bench.outlast(["completions", "tcsh-ng"]);
    assert_eq!(unknown.code(), 2);
    assert!(unknown.stderr.contains("bash"), "{}", unknown.stderr);
    assert!(!bench.data_dir().join("outlast.db").exists(), "completions touch no data");
}
