//! The model refuses, or is broken.

use super::for_each_program;
use super::stage::{Program, Stage};

for_each_program!(a_refused_key, a_broken_model);

fn a_refused_key(program: Program) {
    let says = match program {
        Program::ClaudeCode => "Failed to authenticate. API Error: 401 the script says no",
        Program::Codex => "unexpected status 401 Unauthorized: the script says no",
    };
    check_failed(program, 401, says);
}

fn a_broken_model(program: Program) {
    let says = match program {
        Program::ClaudeCode => "API Error: 500 the script says no",
        Program::Codex => "high demand, which may cause temporary errors",
    };
    check_failed(program, 500, says);
}

/// The run fails with the agent's own words, wherever one looks.
fn check_failed(program: Program, status: u16, says: &str) {
    let Some(stage) = Stage::failing(program, status) else { return };
    let ended = stage.run("r", "t", "Please work.\nRUN echo hello > hello.txt");
    assert_eq!(ended.code(), 1, "{}", ended.stdout);
    let log = stage.bench.check_ended("r");
    let record = stage.bench.record("r");
    assert_eq!((&record["status"], &record["exitCode"]), (&"failed".into(), &1.into()));
    let code = match program {
        Program::ClaudeCode => "api_error",
        Program::Codex => "agent_failed",
    };
    let error = &record["error"];
    assert_eq!(error["code"], code);
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains(says), "{message}");
    assert_eq!(log[log.len() - 1].json["message"], message, "record and log agree");
    let shown = stage.bench.outlast(["attach", "r"]);
    assert_eq!(shown.code(), 1);
    assert!(
        [&shown.stdout, &shown.stderr].iter().any(|text| text.contains(says)),
        "a person sees it: {shown:?}"
    );
    assert!(!stage.endpoint.heard().is_empty(), "the model was asked");
    assert!(!stage.bench.workspace().join("hello.txt").exists());
}
