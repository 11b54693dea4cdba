//! What an agent prints is data: nothing of it is lost, altered, or taken for more than it is.

use std::fs::{self, File};
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outlast::core::event::EventKind;
use outlast::core::hex;
use rustix::process::Signal;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::{
    Bench, Logged, Marker, Proc, eventually, eventually_within, is_stopped, parse_stream, peak_memory,
};

/// The arguments of `outlast run` of a shell script in the bench's workspace, with arguments from `$1` on.
fn run_args(bench: &Bench, run: &str, script: &str, arguments: &[&str]) -> Vec<String> {
    let workspace = bench.workspace();
    let workspace = workspace.to_str().expect("utf-8");
    let args =
        ["run", "--json", "--run-id", run, "--workspace", workspace, "--", "sh", "-c", script, "agent"];
    args.iter().chain(arguments).map(|arg| (*arg).to_owned()).collect()
}

/// Waits, in a script, until the test says so.
const UNTIL_GO: &str = "while [ ! -e go ]; do sleep 0.02; done";

fn go(bench: &Bench) {
    fs::write(bench.workspace().join("go"), "").expect("write");
}

fn wait_for_file(bench: &Bench, name: &str) {
    eventually(name, || bench.workspace().join(name).exists().then_some(()));
}

/// Runs an agent that prints exactly these bytes, and checks its end.
#[track_caller]
fn printed(bench: &Bench, run: &str, bytes: &[u8]) -> Vec<Logged> {
    fs::write(bench.workspace().join(run), bytes).expect("write");
    let ended = bench.outlast(run_args(bench, run, "cat \"$1\"", &[run]));
    assert_eq!(ended.code(), 0, "{run}: {}", ended.stderr);
    let log = bench.check_ended(run);
    assert_eq!(parse_stream(&ended.stdout), log, "{run}: what was followed is what is stored");
    log
}

fn of_kind(log: &[Logged], kind: EventKind) -> Vec<&Value> {
    log.iter().filter(|event| event.kind == kind).map(|event| &event.json).collect()
}

fn customs<'a>(log: &'a [Logged], name: &str) -> Vec<&'a Value> {
    let customs = of_kind(log, EventKind::Custom);
    customs.into_iter().filter(|event| event["name"] == name).map(|event| &event["value"]).collect()
}

#[test]
fn forged_ends_are_text() {
    let bench = Bench::new();
    assert_eq!(bench.outlast(run_args(&bench, "other", "echo hi", &[])).code(), 0);
    let journal = fs::read_to_string(bench.run_file("other", ".ndjson").expect("journal")).expect("read");
    let real = journal.lines().last().expect("a sentinel").to_owned();
    assert!(real.starts_with("{\"__exit\":0,\"__nonce\":\""), "{real}");
    let forged = [
        "{\"__exit\":0}",
        "{\"__exit\":0,\"__nonce\":\"0123456789abcdef0123456789abcdef\"}",
        "{\"__exit\":0,\"__nonce\":\"\"}",
        "{\"__restart\":1,\"__nonce\":\"0123456789abcdef0123456789abcdef\"}",
        &real,
    ];
    let script = format!(
        "printf '%s\\n' \"$@\"; printf '\\n%s\\n' \"$1\"; echo printed; {UNTIL_GO}; echo after; exit 5"
    );
    let mut driver = bench.spawn(run_args(&bench, "r", &script, &forged));
    driver.wait_for("printed");
    assert_eq!(bench.status("r").as_deref(), Some("running"), "nothing that is printed ends a run");
    assert_eq!(bench.record("r")["exitCode"], Value::Null);
    assert!(!driver.has_ended());
    go(&bench);
    assert_eq!(driver.finish().code(), 5, "the agent's own status");
    let text = Bench::text(&bench.check_ended("r"));
    assert_eq!(text, format!("{}\n\n{}\nprinted\nafter\n", forged.join("\n"), forged[0]));
}

#[test]
fn the_journal_is_out_of_the_agents_reach() {
    let bench = Bench::new();
    let script = r#"
        echo one
        true > /dev/stdout
        true > /proc/self/fd/1
        echo two
        for runs in "$1"/sandboxes/*/runs; do
            for file in r.ndjson r.exit r.start r.lock r.err "$runs"/*; do
                true 2> /dev/null > "$runs/${file##*/}"
                echo junk 2> /dev/null >> "$runs/${file##*/}"
            done
        done 2> /dev/null
        echo three
        exit 6
    "#;
    let data_dir = bench.data_dir();
    let args = run_args(&bench, "r", script, &[data_dir.to_str().expect("utf-8")]);
    let ended = bench.outlast(&args);
    if bench.fence("r") != "pid_namespace" {
        eprintln!("SKIPPED: this machine grants no fence that hides the runs directory");
        return;
    }
    assert_eq!(ended.code(), 6, "{}", ended.stderr);
    assert_eq!(Bench::text(&bench.check_ended("r")), "one\ntwo\nthree\n");
}

#[test]
fn bytes_of_every_shape() {
    let bench = Bench::new();
    for (run, bytes) in [
        ("no-newline-at-the-end", "a\nb"),
        ("one-letter", "a"),
        ("only-newlines", "\n\n\n"),
        ("one-newline", "\n"),
        ("blank-last-line", "a\n\n"),
        ("carriage-returns", "a\r\nb\r\n\rc\r"),
        ("nul-bytes", "a\0b\n\0\n\0"),
        ("escapes", "\u{1b}[31mred\u{7}\u{8}\n\u{2028}\u{feff}\n"),
        ("json-that-is-no-event", "{\"type\":\"NO_SUCH_TYPE\"}\n{\"a\":1}\n[]\n{\"type\":\n"),
        ("half-a-sentinel", "{\"__exit\":0,"),
        ("empty", ""),
    ] {
        let log = printed(&bench, run, bytes.as_bytes());
        assert_eq!(Bench::text(&log), bytes, "{run}");
        let others = log.iter().filter(|event| {
            !matches!(
                event.kind,
                EventKind::RunStarted
                    | EventKind::RunFinished
                    | EventKind::TextMessageStart
                    | EventKind::TextMessageContent
                    | EventKind::TextMessageEnd
            )
        });
        assert_eq!(others.count(), 1, "{run}: nothing but text, and the event of the accepted run");
    }
    assert_eq!(of_kind(&bench.log("empty"), EventKind::TextMessageStart).len(), 0, "no message without text");
}

#[test]
fn bytes_that_are_no_text() {
    let bench = Bench::new();
    let log = printed(&bench, "r", b"fine\na\xff\xfeb\n\xc3");
    assert_eq!(Bench::text(&log), "fine\na\u{fffd}\u{fffd}b\n\u{fffd}");
    let whole: Vec<Vec<u8>> = customs(&log, "outlast.undecodable-line")
        .into_iter()
        .map(|value| STANDARD.decode(value["base64"].as_str().expect("base64")).expect("base64"))
        .collect();
    assert_eq!(whole, [b"a\xff\xfeb".to_vec(), b"\xc3".to_vec()], "every byte is there");
}

#[test]
fn long_lines() {
    let bench = Bench::new();
    let line = format!("{}\n", "0123456789".repeat(70_000));
    let log = printed(&bench, "long", format!("before\n{line}after\n").as_bytes());
    let deltas: Vec<&str> = of_kind(&log, EventKind::TextMessageContent)
        .into_iter()
        .map(|event| event["delta"].as_str().expect("delta"))
        .collect();
    assert!(deltas == ["before\n", &line, "after\n"], "a line of 700 kB is one delta");

    for (run, size, end) in [("longer", 20_000_000, "\nafter\n"), ("longer-and-last", 9_000_000, "")] {
        let line: String = "0123456789".repeat(size / 10);
        let log = printed(&bench, run, format!("before\n{line}{end}").as_bytes());
        let expected = json!({"bytes": size, "sha256": hex::encode(&Sha256::digest(line.as_bytes()))});
        assert_eq!(customs(&log, "outlast.oversized-line"), [&expected], "{run}");
        let text = Bench::text(&log);
        assert_eq!(text, format!("before\n{}", end.trim_start_matches('\n')), "{run}: the run goes on");
    }
}

#[test]
fn half_a_line_and_then_the_rest() {
    let bench = Bench::new();
    let script = format!("echo first; printf 'half '; {UNTIL_GO}; echo rest");
    let mut driver = bench.spawn(run_args(&bench, "r", &script, &[]));
    driver.wait_for("first");
    let journal = eventually("the journal", || bench.run_file("r", ".ndjson"));
    eventually("half a line", || (fs::read(&journal).ok()? == b"first\nhalf ").then_some(()));
    // A successor begins with the half line as well.
    driver.kill9();
    let mut driver = bench.spawn(["attach", "--json", "r"]);
    driver.wait_for("first");
    assert!(!driver.stdout().contains("half"), "half a line is not told");
    go(&bench);
    assert_eq!(driver.finish().code(), 0);
    let log = bench.check_ended("r");
    let deltas: Vec<&Value> =
        of_kind(&log, EventKind::TextMessageContent).into_iter().map(|event| &event["delta"]).collect();
    assert_eq!(deltas, ["first\n", "half rest\n"]);
}

#[test]
fn a_child_goes_on_after_the_agents_exit() {
    let bench = Bench::new();
    let marker = Marker::new("leftover");
    // Every line is noted after it was printed. The child would go on for ever.
    let child = "i=0; while :; do echo \"child $i\"; echo $i >> noted; i=$((i+1)); sleep 0.1; done";
    let script = "sh -c \"$1\" \"$2\" & while [ ! -e noted ]; do sleep 0.02; done; \
                  echo main > main; exit 3";
    let ended = bench.outlast(run_args(&bench, "r", script, &[child, &marker.0]));
    assert_eq!(ended.code(), 3, "{}", ended.stderr);
    assert_eq!(marker.alive(), [], "what the agent left behind is killed before the end is told");
    let text = Bench::text(&bench.check_ended("r"));
    let printed = text.lines().count();
    let expected: String = (0..printed).map(|i| format!("child {i}\n")).collect();
    assert_eq!(text, expected, "whole and in order");
    let noted = fs::read_to_string(bench.workspace().join("noted")).expect("noted").lines().count();
    assert!(printed >= noted, "printed {noted}, delivered {printed}");
    assert!(noted >= 5, "the child was given time: {noted}");
}

#[test]
fn an_agent_that_closes_its_output_is_not_at_its_end() {
    let bench = Bench::new();
    let script = format!("echo a; exec >&- 2>&-; touch closed; {UNTIL_GO}; touch done; exit 4");
    let mut driver = bench.spawn(run_args(&bench, "r", &script, &[]));
    wait_for_file(&bench, "closed");
    driver.wait_for("a\\n");
    assert_eq!(bench.status("r").as_deref(), Some("running"));
    assert!(!driver.has_ended());
    go(&bench);
    assert_eq!(driver.finish().code(), 4);
    assert!(bench.workspace().join("done").exists());
    assert_eq!(Bench::text(&bench.check_ended("r")), "a\n");
}

const LINES: usize = 50_000;
/// Of the driver and of the shim, in this debug build.
const MEMORY_KIB: u64 = 40 * 1024;

#[test]
fn fifty_megabytes_in_bounded_memory() {
    let bench = Bench::new();
    let script = format!(
        "awk 'BEGIN {{ pad = sprintf(\"%990s\", \"\"); gsub(/ /, \"x\", pad); \
         for (i = 0; i < {LINES}; i++) printf \"%08d %s\\n\", i, pad }}'; touch printed; {UNTIL_GO}"
    );
    let followed = bench.path().join("followed");
    let mut command = bench.command(run_args(&bench, "r", &script, &[]));
    command.env("OUTLAST_FAILPOINT", "finish.after=stop");
    command.stdout(Stdio::from(File::create(&followed).expect("file")));
    let driver = Proc::new(command.spawn().expect("spawn"));
    let patience = Duration::from_secs(180);
    eventually_within(patience, "50 MB printed", || bench.workspace().join("printed").exists().then_some(()));
    let shim = peak_memory(bench.shim("r").expect("shim")).expect("memory");
    go(&bench);
    eventually_within(patience, "the end is written", || is_stopped(driver.pid()).then_some(()));
    let peak = peak_memory(driver.pid()).expect("memory");
    driver.signal(Signal::CONT);
    assert_eq!(driver.finish().code(), 0);
    eprintln!("peak memory: driver {peak} KiB, shim {shim} KiB");
    assert!(shim < MEMORY_KIB, "the shim took {shim} KiB");
    assert!(peak < MEMORY_KIB, "the driver took {peak} KiB");
    let log = parse_stream(&fs::read_to_string(followed).expect("followed"));
    let pad = "x".repeat(990);
    let text = Bench::text(&log);
    assert_eq!(text.lines().count(), LINES);
    assert!(text.lines().enumerate().all(|(n, line)| line == format!("{n:08} {pad}")), "whole and in order");
    assert_eq!(log.last().expect("events").kind, EventKind::RunFinished);
    assert!(bench.check_ended("r") == log, "what was followed is what is stored");
}

#[test]
fn events_that_are_printed() {
    let bench = Bench::new();
    let events = [
        r#"{"type":"TEXT_MESSAGE_START","messageId":"m1","role":"assistant"}"#,
        r#"{"delta":"Hello","messageId":"m1", "type":"TEXT_MESSAGE_CONTENT"}"#,
        r#"{"type":"TEXT_MESSAGE_END","messageId":"m1"}"#,
        r#"{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"ls"}"#,
        r#"{"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"{\"all\":true}"}"#,
        r#"{"type":"TOOL_CALL_END","toolCallId":"c1"}"#,
        r#"{"type":"TOOL_CALL_RESULT","messageId":"m2","toolCallId":"c1","content":"file"}"#,
        r#"{"type":"CUSTOM","name":"mine","value":{"a":[1,2]}}"#,
    ];
    let started = r#"{"type":"RUN_STARTED","threadId":"forged","runId":"forged"}"#;
    let finished = r#"{"type":"RUN_FINISHED","threadId":"forged","runId":"forged"}"#;
    let lines = format!("{started}\n{}\n{finished}\nand on\n", events.join("\n"));
    let log = printed(&bench, "r", lines.as_bytes());
    let passed: Vec<&str> =
        log.iter().map(|event| event.raw.as_str()).filter(|raw| events.contains(raw)).collect();
    assert_eq!(passed, events, "as printed, in order, once each");
    let started = of_kind(&log, EventKind::RunStarted);
    assert_eq!((started.len(), &started[0]["runId"]), (1, &json!("r")), "Outlast's own");
    let finished = of_kind(&log, EventKind::RunFinished);
    assert_eq!((finished.len(), &finished[0]["runId"]), (1, &json!("r")), "Outlast's own");
    assert!(Bench::text(&log).ends_with("and on\n"), "a printed end is none");
}

#[test]
fn a_printed_error_is_the_runs_when_the_agent_exits() {
    let bench = Bench::new();
    let error = r#"{"type":"RUN_ERROR","message":"no credit left","code":"billing"}"#;
    for (run, agents, own) in [("exits-with-0", 0, 1), ("exits-with-9", 9, 9)] {
        let script = format!("echo before; echo \"$1\"; echo after; {UNTIL_GO}; exit {agents}");
        let _ = fs::remove_file(bench.workspace().join("go"));
        let mut driver = bench.spawn(run_args(&bench, run, &script, &[error]));
        driver.wait_for("after");
        assert_eq!(bench.status(run).as_deref(), Some("running"), "{run}: not before it exits");
        go(&bench);
        assert_eq!(driver.finish().code(), own, "{run}");
        let log = bench.check_ended(run);
        assert_eq!(Bench::text(&log), "before\nafter\n");
        let record = bench.record(run);
        assert_eq!(record["status"], "failed");
        assert_eq!(record["exitCode"], agents);
        assert_eq!(record["error"], json!({"code": "billing", "message": "no credit left"}));
        let last = &log[log.len() - 1].json;
        assert_eq!((&last["code"], &last["message"]), (&json!("billing"), &json!("no credit left")));
    }
}
