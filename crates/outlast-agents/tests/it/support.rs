//! Shared by the tests.

use std::fmt::Write as _;
use std::path::PathBuf;

use outlast_agents::testing::{Translated, check_translator, translate};
use outlast_agents::{Agent, AgentExit, RunContext};
use outlast_core::event::Chunk;

/// The run of every test.
pub fn context() -> RunContext {
    RunContext { run_id: "run".into(), thread_id: "thread".into(), model: None }
}

/// An exit with this status.
pub fn exited(status: i32) -> AgentExit {
    AgentExit { status: Some(status), ..AgentExit::default() }
}

/// An exit by this signal.
pub fn killed(signal: i32) -> AgentExit {
    AgentExit { status: Some(128 + signal), signal: Some(signal), ..AgentExit::default() }
}

/// Real output of a real agent.
pub fn capture(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/captures").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names of the captures that begin like this.
pub fn captures(prefix: &str) -> Vec<String> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    let names = std::fs::read_dir(folder).expect("captures").map(|entry| entry.expect("entry").file_name());
    let names = names.map(|name| name.into_string().expect("a plain name"));
    let mut names: Vec<String> =
        names.filter(|name| name.starts_with(prefix) && name.ends_with(".ndjson")).collect();
    names.sort();
    names
}

/// Translates after having checked that the translator may be relied upon.
pub fn checked(agent: &dyn Agent, output: &[u8], exit: &AgentExit) -> Translated {
    check_translator(agent, &context(), output).unwrap_or_else(|violation| panic!("{violation}"));
    translate(agent, &context(), output, exit)
}

/// The JSON of every event.
pub fn events(translated: &Translated) -> Vec<&str> {
    translated.events.iter().map(|(_, chunk)| chunk.json.as_str()).collect()
}

/// The events themselves.
pub fn chunks(translated: &Translated) -> Vec<Chunk> {
    translated.events.iter().map(|(_, chunk)| chunk.clone()).collect()
}

/// One event per line, then the end.
pub fn render(translated: &Translated) -> String {
    let mut out = events(translated).join("\n");
    let ended = &translated.ended;
    out.push_str("\n\n");
    match &ended.failure {
        Some(failure) => writeln!(out, "failure: {}: {}", failure.code, failure.message),
        None => writeln!(out, "no failure"),
    }
    .expect("text");
    for usage in &ended.usage {
        writeln!(out, "usage: {}", serde_json::to_string(usage).expect("json")).expect("text");
    }
    if let Some(result) = &ended.result {
        writeln!(out, "result: {result}").expect("text");
    }
    if let Some(session) = &translated.session {
        writeln!(out, "session: {session}").expect("text");
    }
    out
}
