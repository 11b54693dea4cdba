//! One turn: to its end, through a kill -9, into a cancel.

use std::fs;
use std::time::{Duration, Instant};

use outlast::core::event::EventKind;
use outlast::core::transcript::{Message, Role};

use super::endpoint::{DONE, LOOKING, Said};
use super::for_each_program;
use super::stage::{Program, Stage, customs};
use crate::support::{Bench, Logged, Marker, eventually, gated_script};

for_each_program!(runs_to_completion, killed_in_mid_tool_and_attached, cancelled_in_mid_tool);

fn runs_to_completion(program: Program) {
    let Some(stage) = Stage::scripted(program) else { return };
    let ended = stage.run("r", "t", "Please work.\nRUN echo hello | tee hello.txt");
    let streamed = ended.ok();
    let log = stage.bench.check_ended("r");
    assert_eq!(streamed, stage.bench.outlast(["logs", "--json", "r"]).ok(), "what was shown is the log");
    let written = fs::read_to_string(stage.bench.workspace().join("hello.txt")).expect("the agent's file");
    assert_eq!(written, "hello\n");
    check_worked(&stage, &log, "hello");

    let record = stage.bench.record("r");
    assert_eq!((&record["status"], &record["exitCode"]), (&"completed".into(), &0.into()));
    assert_eq!(record["endReason"], "exited");
    let usage = &record["usage"][0];
    // Two calls of the model: the cached tokens of the first dialect are told beside the others, of the second within.
    let input = if program == Program::ClaudeCode { 300 } else { 200 };
    assert_eq!((&usage["inputTokens"], &usage["outputTokens"]), (&input.into(), &40.into()), "{usage}");
    assert_eq!(usage["cachedInputTokens"], 100);
    assert_eq!(log[log.len() - 1].json["usage"], record["usage"], "record and log agree on the usage");
}

fn killed_in_mid_tool_and_attached(program: Program) {
    let Some(stage) = Stage::scripted(program) else { return };
    let [_, _, command] = gated_script("echo went | tee -a went.txt");
    let mut driver = stage.start("r", "t", &format!("Please work.\nRUN {command}"));
    driver.wait_for("TOOL_CALL_END");
    eventually("the tool works", || (stage.bench.starts() == 1).then_some(()));
    let seen = driver.stdout();
    driver.kill9();
    let attached = stage.spawn(&["attach", "--json", "r"]);
    eventually("somebody else drives", || (stage.bench.record("r")["driverEpoch"] == 2).then_some(()));
    assert_eq!(stage.bench.starts(), 1, "no second agent");
    stage.bench.open_gate();

    let streamed = attached.finish().ok();
    let logs = stage.bench.outlast(["logs", "--json", "r"]).ok();
    assert_eq!(streamed, logs, "what attach shows is the log, from the start to the end");
    let complete = seen.rfind('\n').map_or(0, |end| end + 1);
    assert!(logs.starts_with(&seen[..complete]), "what the killed one showed is how the log begins");
    let log = stage.bench.check_ended("r");
    check_worked(&stage, &log, "went");
    assert_eq!(stage.bench.record("r")["status"], "completed");
    assert_eq!(stage.bench.starts(), 1, "the tool was called once");
    let went = fs::read_to_string(stage.bench.workspace().join("went.txt")).expect("the agent's file");
    assert_eq!(went, "went\n");
}

/// The agent has had one command run, whose output holds the text, and said so; once, in one session.
#[track_caller]
fn check_worked(stage: &Stage, log: &[Logged], output: &str) {
    let ended = |kind| log.iter().filter(|event| event.kind == kind).collect::<Vec<_>>();
    let calls = ended(EventKind::ToolCallStart);
    let results = ended(EventKind::ToolCallResult);
    assert_eq!((calls.len(), results.len()), (1, 1), "one call, one result");
    assert_eq!(calls[0].json["toolCallName"], stage.program.shell());
    assert_eq!(results[0].json["toolCallId"], calls[0].json["toolCallId"]);
    assert!(results[0].json["content"].as_str().expect("content").contains(output), "{}", results[0].raw);
    assert_eq!(Bench::text(log), format!("{LOOKING}{DONE}"));

    let session = format!("{}.session-id", stage.program.agent());
    let sessions = customs(log, &session);
    assert_eq!(sessions.len(), 1, "one session: {sessions:?}");
    assert_eq!(stage.bench.record("r")["agentSession"], sessions[0]["sessionId"]);
    let files = stage.session_files();
    assert_eq!(files.len(), 1, "the program has one session too: {files:?}");

    let heard = stage.endpoint.heard();
    assert_eq!(heard.len(), 2, "the model was called for the command and for its result: {heard:#?}");
    assert!(matches!(&heard[0].conversation[..], [Said::User(_)]), "{heard:#?}");
    let last = &heard[1].conversation[..];
    let [Said::User(_), Said::Model(looking), Said::Tool(result)] = last else { panic!("{heard:#?}") };
    assert!(looking == LOOKING && result.contains(output), "{heard:#?}");

    let messages = stage.bench.messages("r");
    assert_eq!(said(&messages, Role::User).len(), 1);
    assert!(said(&messages, Role::Tool)[0].contains(output));
}

fn said(messages: &[Message], role: Role) -> Vec<&str> {
    messages.iter().filter(|m| m.role == role).filter_map(|m| m.content.as_deref()).collect()
}

#[allow(clippy::disallowed_methods, reason = "tests run on real time")]
fn cancelled_in_mid_tool(program: Program) {
    /// Within this time of the call nothing of the agent lives.
    const GONE_WITHIN: Duration = Duration::from_secs(8);
    let Some(stage) = Stage::scripted(program) else { return };
    let marker = Marker::new(program.file());
    let [_, _, command] = gated_script("echo went > went.txt");
    let mut driver = stage.start("r", "t", &format!("Please work.\nRUN : {}; {command}", marker.0));
    driver.wait_for("TOOL_CALL_END");
    eventually("the tool works", || (stage.bench.starts() == 1).then_some(()));
    assert!(!marker.alive().is_empty(), "the tool has the marker in its arguments");
    let agent = processes_at(&stage);
    assert!(agent.iter().any(|(_, arguments)| arguments.contains(program.file())), "{agent:?}");

    let called = Instant::now();
    let cancel = stage.spawn(&["cancel", "r"]);
    marker.wait_until_gone(GONE_WITHIN.saturating_sub(called.elapsed()));
    while let agent @ [_, ..] = &processes_at(&stage)[..] {
        assert!(called.elapsed() < GONE_WITHIN, "after {GONE_WITHIN:?} there lives: {agent:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
    let cancelled = cancel.finish();
    assert_eq!(cancelled.code(), 0, "{}", cancelled.stderr);
    assert!(cancelled.stderr.contains("no process of it lives"), "{}", cancelled.stderr);
    assert_eq!(driver.finish().code(), 143);

    let log = stage.bench.check_ended("r");
    assert_eq!(log[log.len() - 1].json["code"], "aborted");
    assert_eq!(stage.bench.record("r")["status"], "aborted");
    let calls = log.iter().filter(|event| event.kind == EventKind::ToolCallStart).count();
    let results = log.iter().filter(|event| event.kind == EventKind::ToolCallResult).count();
    assert_eq!((calls, results), (1, 1), "the call has a result that says what became of it");
    let tools = stage.bench.messages("r").into_iter().filter(|message| message.role == Role::Tool);
    assert!(
        tools.into_iter().all(|message| message.error.is_some()),
        "an answer that never came is a failure"
    );
    assert!(!stage.bench.workspace().join("went.txt").exists());
}

/// The living processes that have the program's home in their environment, `outlast` itself left out.
fn processes_at(stage: &Stage) -> Vec<(i32, String)> {
    let home = format!("HOME={}\0", stage.home().display());
    let read = |pid: i32, file: &str| {
        let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let pids = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    // The environment of a zombie reads as empty.
    let of_home = pids.filter(|pid| read(*pid, "environ").contains(&home));
    let named = of_home.map(|pid| (pid, read(pid, "cmdline").replace('\0', " ")));
    named
        .filter(|(_, arguments)| !arguments.split(' ').next().unwrap_or_default().ends_with("/outlast"))
        .collect()
}
