//! The stream for a person: plain in a pipe, with colours on a terminal, and safe there.

use std::fs::{self, File};
use std::io::Read;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Bench, Finished, Proc, eventually, gated_script, terminal};

/// Lays the events where the agent `cat events` prints them.
fn lay_events(bench: &Bench, events: &[Value]) {
    let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
    fs::write(bench.workspace().join("events"), lines).expect("events");
}

fn run_of_events(bench: &Bench, run: &str) -> Command {
    let workspace = bench.workspace();
    bench.command([
        "run",
        "--run-id",
        run,
        "--workspace",
        workspace.to_str().expect("utf-8"),
        "--",
        "cat",
        "events",
    ])
}

fn text(id: &str, deltas: &[&str]) -> Vec<Value> {
    let mut events = vec![json!({"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"})];
    events.extend(
        deltas.iter().map(|delta| json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta})),
    );
    events.push(json!({"type": "TEXT_MESSAGE_END", "messageId": id}));
    events
}

fn reasoning(id: &str, delta: &str) -> Vec<Value> {
    [
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        "REASONING_END",
    ]
    .into_iter()
    .map(|kind| match kind {
        "REASONING_MESSAGE_CONTENT" => json!({"type": kind, "messageId": id, "delta": delta}),
        "REASONING_MESSAGE_START" => json!({"type": kind, "messageId": id, "role": "reasoning"}),
        _ => json!({"type": kind, "messageId": id}),
    })
    .collect()
}

fn call(id: &str, name: &str, arguments: &Value) -> Vec<Value> {
    vec![
        json!({"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name}),
        json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": arguments.to_string()}),
        json!({"type": "TOOL_CALL_END", "toolCallId": id}),
    ]
}

fn outcome(id: &str, content: &str, failed: bool) -> Value {
    let message = format!("result-{id}");
    let mut event = json!({"type": "TOOL_CALL_RESULT", "messageId": message, "toolCallId": id, "content": content, "role": "tool"});
    if failed {
        event["metadata"] = json!({"tanstack": {"state": "output-error"}});
    }
    event
}

/// A turn of an agent with everything that a turn may have.
fn a_turn() -> Vec<Value> {
    let mut events = reasoning("m1", "Let me look.");
    events.extend(text("m2", &["I look ", "first.\nThen I ", "write."]));
    events.extend(call("c1", "shell", &json!({"command": "ls -la"})));
    events.push(outcome("c1", "total 0\nsecond line", false));
    events.extend(call("c2", "write_file", &json!({"path": "a.txt", "content": "x"})));
    events.push(outcome("c2", "no space left", true));
    events.extend(text("m3", &["Done."]));
    events
}

/// The text without the durations, which differ: how long a tool took is left out, as it is where that is nothing.
fn without_times(text: &str) -> String {
    let mut words: Vec<&str> = text.split_inclusive([' ', '\n']).collect();
    let is_number = |word: &str| word.trim_end().parse::<f64>().is_ok();
    for (before, instead) in [("in ", None), ("after ", Some("after T"))] {
        while let Some(at) = words.windows(2).position(|pair| pair[0] == before && is_number(pair[1])) {
            let behind = words[at + 2].trim_start_matches('m').trim_start_matches('s');
            words.splice(at..at + 3, instead.into_iter().chain([behind]));
        }
    }
    words.concat().replace(" :", ":").replace(" \n", "\n")
}

#[test]
fn plain_in_a_pipe() {
    let bench = Bench::new();
    lay_events(&bench, &a_turn());
    let finished = Proc::new(run_of_events(&bench, "r").spawn().expect("spawn")).finish();
    let expected = "Let me look.\nI look first.\nThen I write.\n● shell ls -la → ok: total 0\n\
                    ● write_file a.txt → failed: no space left\nDone.\n";
    let stderr = without_times(&finished.stderr);
    assert!(stderr.ends_with("outlast: completed after T\n"), "{stderr}");
    assert!(!finished.stderr.contains('\x1b'), "{stderr}");
    let shown = finished.ok();
    assert_eq!(without_times(&shown), expected, "{shown:?}");
    // Whoever attaches later, or looks at the log, sees the same.
    assert_eq!(bench.outlast(["attach", "r"]).ok(), shown);
    assert_eq!(bench.outlast(["logs", "r"]).ok(), shown);
}

#[test]
fn calls_side_by_side_and_calls_without_an_outcome() {
    let bench = Bench::new();
    let mut events = call("c1", "shell", &json!({"command": "one"}));
    events.extend(call("c2", "shell", &json!({"command": "two\nlines"})));
    events.push(outcome("c1", "", false));
    events.push(outcome("c2", "\n  out of two", false));
    events.extend(call("c3", "search", &json!({"limit": 3})));
    lay_events(&bench, &events);
    let shown = Proc::new(run_of_events(&bench, "r").spawn().expect("spawn")).finish().ok();
    let shown = without_times(&shown);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(
        lines[..4],
        ["● shell one", "● shell two…", "  ↳ shell → ok", "  ↳ shell → ok: out of two"],
        "{shown}"
    );
    assert_eq!(lines.len(), 5, "{shown}");
    assert!(lines[4].starts_with("● search 3 → failed: "), "a call that got no result says so: {shown}");
}

#[test]
fn text_as_it_comes() {
    let bench = Bench::new();
    let first = json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"});
    let half = json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "half a li"});
    let script = format!("echo start >> starts; echo '{first}'; echo '{half}'");
    let [sh, c, rest] = gated_script("true");
    let agent = [sh, c, format!("{script}; {rest}")];
    let seen = bench.path().join("seen");
    let mut args = bench.run_args("r", &[], &agent);
    args.retain(|arg| arg != "--json");
    let mut command = bench.command(args);
    command.stdout(File::create(&seen).expect("create"));
    let run = Proc::new(command.spawn().expect("spawn"));
    eventually("the half of a line", || {
        (fs::read_to_string(&seen).expect("seen") == "half a li").then_some(())
    });
    bench.open_gate();
    run.finish().ok();
    assert_eq!(fs::read_to_string(&seen).expect("seen"), "half a li\n");
}

#[test]
fn a_failure_says_its_cause() {
    let bench = Bench::new();
    let mut events = text("m", &["Trying."]);
    events.push(json!({"type": "RUN_ERROR", "message": "the model is away", "code": "overloaded"}));
    lay_events(&bench, &events);
    let finished = Proc::new(run_of_events(&bench, "r").spawn().expect("spawn")).finish();
    assert_eq!(finished.code(), 1, "it failed although its agent exited with 0");
    assert_eq!(finished.stdout, "Trying.\n", "the cause is not the agent's text");
    assert!(
        without_times(&finished.stderr)
            .ends_with("outlast: failed after T: the model is away (overloaded)\n"),
        "{}",
        finished.stderr
    );
    let exited = bench.outlast(["run", "--run-id", "e", "--", "sh", "-c", "echo oops >&2; exit 4"]);
    assert_eq!(exited.code(), 4);
    assert_eq!(exited.stdout, "", "nothing but the agent's text");
    assert!(exited.stderr.contains("exited with status 4"), "{}", exited.stderr);
    assert!(exited.stderr.contains("oops"), "the last of its standard error: {}", exited.stderr);
    let logged = bench.outlast(["logs", "e"]);
    assert!(logged.stderr.contains("exited with status 4"), "{}", logged.stderr);
}

/// Runs the command with its standard output and error on a terminal, and gives what the terminal was sent.
fn on_a_terminal(mut command: Command) -> (Option<i32>, String) {
    let (mut main, terminal) = terminal();
    command.stdout(Stdio::from(terminal.try_clone().expect("clone"))).stderr(Stdio::from(terminal));
    let mut child = command.spawn().expect("spawn");
    drop(command);
    let mut sent = Vec::new();
    let mut buffer = [0; 4096];
    // The terminal's last user has closed it: an error on Linux.
    while let Ok(count @ 1..) = main.read(&mut buffer) {
        sent.extend_from_slice(&buffer[..count]);
    }
    let status = child.wait().expect("wait");
    (status.code(), String::from_utf8(sent).expect("utf-8"))
}

#[test]
fn colours_on_a_terminal() {
    let bench = Bench::new();
    lay_events(&bench, &a_turn());
    let mut command = run_of_events(&bench, "r");
    command.env_remove("NO_COLOR");
    let (status, sent) = on_a_terminal(command);
    assert_eq!(status, Some(0), "{sent}");
    for part in [
        "\x1b[2mLet me look.\x1b[0m\r\n",
        "I look first.\r\nThen I write.\r\n",
        "\x1b[1mshell\x1b[0m ls -la",
        "\x1b[32mok\x1b[0m",
        "\x1b[31mfailed\x1b[0m",
        "Done.\r\n",
        "\x1b[32moutlast: completed after ",
    ] {
        assert!(sent.contains(part), "{part:?}: {sent:?}");
    }
    let mut again = bench.command(["attach", "r"]);
    again.env("NO_COLOR", "1");
    let (status, sent) = on_a_terminal(again);
    assert_eq!(status, Some(0), "{sent}");
    assert!(!sent.contains('\x1b'), "{sent:?}");
    assert!(sent.contains("Let me look.\r\n") && sent.contains("● shell ls -la → ok"), "{sent:?}");
    let mut empty = bench.command(["attach", "r"]);
    empty.env("NO_COLOR", "");
    assert!(on_a_terminal(empty).1.contains("\x1b[2m"), "NO_COLOR counts where it is not empty");
    // JSON is for programs, on a terminal too.
    let (_, json) = on_a_terminal(bench.command(["logs", "--json", "r"]));
    assert!(!json.contains('\x1b') && json.starts_with("{\"id\":"), "{json:?}");
}

/// What an agent prints must not clear the screen, set titles, answer for the user or turn text around.
#[test]
fn an_agents_escapes_become_visible() {
    let bench = Bench::new();
    let evil = "\x1b]0;owned\x07\x1b[2J\x1b[31m\u{9b}5n\u{202e}txt\r";
    let mut events = text("m1", &["before ", evil, " after\n"]);
    events.extend(reasoning("m2", evil));
    events.extend(call("c1", &format!("tool{evil}"), &json!({"command": evil})));
    events.push(outcome("c1", evil, false));
    events.extend(call("c2", "t", &json!({"command": "x"})));
    events.push(outcome("c2", evil, true));
    events.push(json!({"type": "CUSTOM", "name": "codex.error", "value": {"message": evil}}));
    events.push(json!({"type": "RUN_ERROR", "message": evil, "code": evil}));
    lay_events(&bench, &events);
    let mut command = run_of_events(&bench, "r");
    command.env("NO_COLOR", "1");
    let (status, sent) = on_a_terminal(command);
    assert_eq!(status, Some(1), "{sent:?}");
    check_harmless(&sent);
    assert!(sent.contains("before ␛]0;owned␇␛[2J␛[31m"), "{sent:?}");
    assert_eq!(sent.matches("␛]0;owned␇").count(), sent.matches("owned").count(), "{sent:?}");
    assert!(
        sent.matches("owned").count() >= 6,
        "text, reasoning, name, arguments, outcomes, error: {sent:?}"
    );
    for args in [
        ["attach", "r"].as_slice(),
        &["logs", "r"],
        &["ps", "-a"],
        &["show", "r"],
        &["show", "--messages", "r"],
    ] {
        let mut command = bench.command(args);
        command.env("NO_COLOR", "1");
        check_harmless(&on_a_terminal(command).1);
    }
    // In a pipe the text is data, byte for byte.
    let piped = bench.outlast(["logs", "r"]).ok();
    assert!(piped.contains(&format!("before {evil} after\n")), "{piped:?}");
}

#[track_caller]
fn check_harmless(sent: &str) {
    let hazard = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
    let harmful: Vec<char> = sent.replace("\r\n", "\n").chars().filter(|c| hazard(*c)).collect();
    assert!(harmful.is_empty(), "{harmful:?} in {sent:?}");
}

/// The demo's agent at another pace.
fn demo_config(pace: &str) -> String {
    let argv = json!([env!("CARGO_BIN_EXE_outlast"), "__demo-agent"]);
    format!("[agents.swift]\nkind = \"command\"\nargv = {argv}\nenv = {{ OUTLAST_DEMO_PACE = \"{pace}\" }}\n")
}

fn demo_args(bench: &Bench) -> [String; 8] {
    let workspace = bench.workspace().to_str().expect("utf-8").to_owned();
    ["run", "--agent", "swift", "--run-id", "demo", "--workspace", &workspace, "Write a word counter"]
        .map(str::to_owned)
}

/// The demo really works: the files are there, and the test that it wrote passes.
fn check_demo(bench: &Bench) {
    let workspace = bench.workspace();
    for name in ["wordcount.sh", "test/run.sh", "test/sample.txt"] {
        assert!(workspace.join(name).is_file(), "{name}");
    }
    assert!(
        fs::read_to_string(workspace.join("wordcount.sh")).expect("file").contains("grep ."),
        "its last edit"
    );
    let test = Command::new("sh").arg("test/run.sh").current_dir(&workspace).output().expect("sh");
    assert_eq!(String::from_utf8_lossy(&test.stdout), "1 test passed\n");
    bench.check_ended("demo");
    let messages = bench.messages("demo");
    let of_role = |role: &str| messages.iter().filter(|message| message.role.as_str() == role).count();
    assert_eq!(messages[0].content.as_deref(), Some("Write a word counter"));
    assert_eq!((of_role("user"), of_role("tool"), of_role("reasoning")), (1, 8, 2));
    assert!(of_role("assistant") >= 5);
    assert!(messages.iter().all(|message| message.error.is_none()), "no tool of it fails: {messages:?}");
    // What it says about its commands is what they do.
    let outputs: Vec<&str> = messages
        .iter()
        .filter(|message| message.role.as_str() == "tool")
        .filter_map(|message| message.content.as_deref())
        .filter(|content| !content.starts_with("wrote "))
        .collect();
    assert_eq!(outputs[1..], ["1 test passed\n", "1\n", "1 test passed\n0\n"], "{outputs:?}");
}

#[test]
fn the_demo_edits_files() {
    let bench = Bench::with_config(&demo_config("0"));
    let finished = bench.outlast(demo_args(&bench));
    assert!(finished.stderr.contains("outlast: completed after "), "{}", finished.stderr);
    let shown = finished.ok();
    for line in [
        "I will write a small word counter with a test.",
        "● write_file wordcount.sh → ok",
        "● shell sh test/run.sh → ok",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    check_demo(&bench);
}

#[test]
fn the_demo_goes_on_when_its_terminal_is_killed() {
    let bench = Bench::with_config(&demo_config("0.1"));
    let mut first = bench.spawn(demo_args(&bench));
    first.wait_for("write_file");
    first.kill9();
    let attached: Finished = bench.outlast(["attach", "demo"]);
    assert_eq!(attached.code(), 0, "{}", attached.stderr);
    assert!(attached.stdout.starts_with("The user wants a word counter."), "{}", attached.stdout);
    assert!(attached.stdout.contains("Done: wordcount.sh counts words"), "{}", attached.stdout);
    check_demo(&bench);
}
