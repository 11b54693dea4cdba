//! Ledgers on the command line.

use serde_json::{Value, json as value};

use super::{json, run};
use crate::support::{Bench, eventually, gated_script};

/// A session is named by its thread or its id, and holds what its runs were.
#[test]
fn shown_by_thread_and_by_id() {
    let bench = Bench::new();
    for (n, thread) in ["t", "t", "u"].iter().enumerate() {
        let args =
            ["run", "--run-id", &format!("r{n}"), "--thread", thread, &format!(" ask {n} \nmore"), "--"];
        bench.outlast(args.iter().chain(&["sh", "-c", "echo said"])).ok();
    }
    let shown = json(&bench, &["session", "show", "t"]);
    let id = shown["sessionId"].as_str().expect("an id");
    assert_eq!(json(&bench, &["session", "show", id]), shown);
    let has = |name: &str| shown[name].clone();
    assert_eq!((has("title"), has("runs"), has("messages")), (value!("ask 0"), value!(2), value!(4)));
    assert_eq!(shown["lastRun"], value!({"runId": "r1", "status": "completed"}));
    let said = |args: &[&str]| -> Vec<String> {
        let messages = json(&bench, args);
        let all = messages.as_array().expect("messages").iter();
        all.map(|message| message["content"].as_str().expect("text").trim().to_owned()).collect()
    };
    let whole = said(&["session", "show", id, "--messages"]);
    assert_eq!(whole, ["ask 0 \nmore", "said", "ask 1 \nmore", "said"]);
    assert_eq!(said(&["session", "show", "t", "--messages", "--limit", "3"]), whole[1..]);
    let text = bench.outlast(["session", "show", "t", "--messages"]).ok();
    assert!(text.contains("user:  ask 1") && text.contains("assistant: said"), "{text}");
    let listed = json(&bench, &["session", "ls"]);
    let threads: Vec<&str> =
        listed.as_array().expect("list").iter().filter_map(|one| one["threadId"].as_str()).collect();
    assert_eq!(threads, ["u", "t"], "the last active first");
    let (code, message) = bench.outlast(["session", "show", "none", "--json"]).failure();
    assert_eq!(code, "session_not_found");
    assert!(message.contains("session ls"), "{message}");
}

/// A live run is in its session from its start, and its messages are shown before they are records.
#[test]
fn while_a_run_lives() {
    let bench = Bench::new();
    bench.outlast(bench.run_args("r", &["-d", "begin"], &gated_script("echo said"))).ok();
    let shown = json(&bench, &["session", "show", "thread-r"]);
    assert_eq!((&shown["records"], &shown["lastRun"]), (&value!(1), &value!({"runId": "r"})));
    let messages = json(&bench, &["session", "show", "thread-r", "--messages"]);
    assert_eq!((&messages[0]["role"], messages.as_array().map(Vec::len)), (&value!("user"), Some(1)));
    let (code, message) = bench.outlast(["session", "rm", "thread-r", "--yes", "--json"]).failure();
    assert_eq!(code, "thread_busy");
    assert!(message.contains("\"r\""), "{message}");
    bench.open_gate();
    eventually("its end", || {
        bench.outlast(["attach", "r"]).ok();
        (bench.status("r")? == "completed").then_some(())
    });
    assert!(
        json(&bench, &["session", "show", "thread-r"])["messages"].as_u64().is_some_and(|count| count >= 2)
    );
}

/// What is exported is imported whole, elsewhere and again; what was cut, changed, or would mix two pasts is refused.
#[test]
fn exported_and_imported() {
    let bench = Bench::new();
    run(&bench, "r1", "t", "head -c 700000 /dev/zero | tr '\\0' x; echo; echo short");
    run(&bench, "r2", "t", "echo again");
    let before = json(&bench, &["session", "show", "t", "--messages"]);
    let file = bench.path().join("t.jsonl");
    let path = file.to_str().expect("utf-8");
    let exported = json(&bench, &["session", "export", "t", "--output", path]);
    assert_eq!(exported["incomplete"], 0);
    let text = std::fs::read_to_string(&file).expect("written");
    assert!(text.len() > 700_000, "bodies are in it");
    let elsewhere = Bench::new();
    let imported = json(&elsewhere, &["session", "import", path]);
    assert_eq!((&imported["threadId"], &imported["known"]), (&value!("t"), &value!(0)));
    assert_eq!(imported["withoutSnapshot"], 2, "snapshots are not in the file");
    assert_eq!(json(&elsewhere, &["session", "show", "t", "--messages"]), before);
    let again = json(&elsewhere, &["session", "import", path]);
    assert_eq!((&again["added"], &again["known"]), (&value!(0), &imported["added"]));
    // The thread goes on there.
    run(&elsewhere, "r3", "t", "echo third");
    let (_, message) = elsewhere.outlast(["session", "import", path, "--json"]).failure();
    assert!(message.contains("--thread"), "{message}");
    json(&elsewhere, &["session", "import", path, "--thread", "copy"]);
    assert_eq!(json(&elsewhere, &["session", "show", "copy", "--messages"]), before);
    let refused = |content: &str, says: &str| {
        let bad = bench.path().join("bad.jsonl");
        std::fs::write(&bad, content).expect("written");
        let result =
            elsewhere.outlast(["session", "import", bad.to_str().expect("utf-8"), "--thread", "bad"]);
        assert_eq!(result.code(), 2, "{result:?}");
        assert!(result.stderr.contains(says), "{says}: {}", result.stderr);
        assert_eq!(elsewhere.outlast(["session", "show", "bad"]).code(), 1, "nothing of it");
    };
    let lines: Vec<&str> = text.lines().collect();
    refused(&lines[..lines.len() - 1].join("\n"), "cut");
    refused(&text.replacen("short", "shart", 1), "damaged");
    refused(&text.replacen("\"seq\":3", "\"seq\":2", 1), "comes after");
    refused("", "empty");
    refused("{\"outlast\":\"session\",\"version\":9}\n", "version 9");
    refused("nonsense\n", "no exported session");
    let output = bench.outlast(["session", "export", "t", "--output", "-"]).ok();
    let stable = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    let records =
        |text: &str| stable(text).into_iter().filter(|line| line.contains("\"seq\"")).collect::<Vec<_>>();
    assert_eq!(records(&output), records(&text));
    let _: Value = serde_json::from_str(lines[0]).expect("a header");
}
