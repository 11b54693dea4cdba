//! A conversation of two turns.

use std::collections::BTreeSet;
use std::fs;

use super::endpoint::{DONE, LOOKING, Said, answer};
use super::for_each_program;
use super::stage::{Program, Stage, customs};
use crate::support::Bench;

for_each_program!(a_thread_goes_on, a_lost_session_is_told_again, two_data_directories_share_a_home);

const FIRST: &str = "The password is ochre-42.\nRUN echo first";
const SECOND: &str = "What was the password?";

fn a_thread_goes_on(program: Program) {
    let Some(stage) = Stage::scripted(program) else { return };
    stage.run("first", "t", FIRST).ok();
    stage.run("second", "t", SECOND).ok();
    let log = stage.bench.check_ended("second");
    assert_eq!(Bench::text(&log), answer(SECOND), "only this turn's own words");
    assert!(customs(&log, "outlast.session-restarted").is_empty());

    let heard = stage.endpoint.heard();
    assert_eq!(heard.len(), 3, "{heard:#?}");
    let conversation = &heard[2].conversation[..];
    let [Said::User(first), Said::Model(looking), Said::Tool(result), Said::Model(done), Said::User(second)] =
        conversation
    else {
        panic!("the agent has told the model the whole conversation, each part once: {conversation:#?}")
    };
    assert_eq!((first.as_str(), second.as_str()), (FIRST, SECOND));
    assert_eq!((looking.as_str(), done.as_str()), (LOOKING, DONE));
    assert!(result.contains("first"), "{result}");

    let [first, second] = ["first", "second"].map(|run| stage.bench.record(run));
    assert!(second["agentSession"].is_string());
    match program {
        // Each run has a session of its own: a second guard against starting it twice.
        Program::ClaudeCode => assert_ne!(first["agentSession"], second["agentSession"]),
        Program::Codex => assert_eq!(first["agentSession"], second["agentSession"]),
    }
    assert_eq!(second["threadId"], "t");
    check_ids(&stage);
}

fn a_lost_session_is_told_again(program: Program) {
    let Some(stage) = Stage::scripted(program) else { return };
    stage.run("first", "t", FIRST).ok();
    stage.lose_sessions();
    stage.run("second", "t", SECOND).ok();
    let log = stage.bench.check_ended("second");
    assert_eq!(Bench::text(&log), answer(SECOND));
    assert_eq!(customs(&log, "outlast.session-restarted").len(), 1, "it is said that the session was lost");

    let heard = stage.endpoint.heard();
    assert_eq!(heard.len(), 3, "{heard:#?}");
    let [Said::User(prompt)] = &heard[2].conversation[..] else {
        panic!("a fresh session: {heard:#?}");
    };
    for told in ["The password is ochre-42.", LOOKING, "echo first", DONE, SECOND] {
        assert!(prompt.contains(told), "{told:?} in {prompt}");
    }
    let [first, second] = ["first", "second"].map(|run| stage.bench.record(run));
    assert_eq!(second["status"], "completed");
    assert_ne!(first["agentSession"], second["agentSession"]);
    check_ids(&stage);

    // The fresh session is the one that the thread goes on with.
    let third = "And what did I ask then?";
    stage.run("third", "t", third).ok();
    let heard = stage.endpoint.heard();
    let [Said::User(again), Said::Model(answered), Said::User(asked)] = &heard[3].conversation[..] else {
        panic!("the fresh session goes on: {heard:#?}");
    };
    assert_eq!((again, answered, asked.as_str()), (prompt, &answer(SECOND), third));
    assert!(customs(&stage.bench.check_ended("third"), "outlast.session-restarted").is_empty());
}

fn two_data_directories_share_a_home(program: Program) {
    let Some(stage) = Stage::scripted(program) else { return };
    stage.run("r", "t", FIRST).ok();
    let other = stage.bench.path().join("other");
    fs::create_dir(&other).expect("data directory");
    fs::copy(stage.bench.data_dir().join("outlast.toml"), other.join("outlast.toml")).expect("configuration");
    let workspace = stage.bench.workspace();
    let place =
        ["--data-dir", other.to_str().expect("utf-8"), "--workspace", workspace.to_str().expect("utf-8")];
    let run = ["run", "--run-id", "r", "--thread", "t", "--agent", program.agent(), SECOND];
    let shown = stage.spawn(&[&run[..], &place].concat()).finish().ok();
    assert!(shown.contains(&answer(SECOND)), "the same run id there is another run: {shown}");
    let heard = stage.endpoint.heard();
    assert_eq!(
        heard[2].conversation,
        [Said::User(SECOND.to_owned())],
        "and the same thread id another thread"
    );
}

/// No message or tool call of one run has an id of the other.
#[track_caller]
fn check_ids(stage: &Stage) {
    let [first, second] = ["first", "second"].map(|run| {
        let log = stage.bench.check_ended(run);
        let ids = log.iter().flat_map(|event| {
            ["messageId", "toolCallId"].into_iter().filter_map(|name| event.json[name].as_str())
        });
        ids.map(str::to_owned).collect::<BTreeSet<_>>()
    });
    assert!(!first.is_empty() && !second.is_empty());
    assert!(first.is_disjoint(&second), "{first:?} {second:?}");
}
