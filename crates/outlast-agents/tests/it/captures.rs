//! Every capture, translated, as a reviewed snapshot.

use std::collections::BTreeSet;

use outlast_agents::testing::Translated;
use outlast_agents::{Agent, AgentExit, ClaudeCode, Codex};
use outlast_core::Seq;
use outlast_core::event::EventKind;
use outlast_core::transcript::{Role, fold_log};
use serde_json::Value;

use crate::support::{capture, captures, checked, chunks, context, exited, killed, render};

/// How the captured program ended.
fn exit_of(name: &str) -> AgentExit {
    let name = name.to_lowercase();
    let is = |part: &str| name.contains(part);
    let mut exit = match () {
        () if is("resume-after-sigkill") => exited(0),
        () if is("sigkill") => killed(9),
        // The last two had tried for two minutes when their time was up.
        () if is("sigterm") || is("-401.") || is("server-drops") => killed(15),
        () if is("401-max") || is("-500") || is("max-turns") || is("unknown-session") => exited(1),
        () => exited(0),
    };
    if is("resume-unknown") {
        let stderr = capture(&name.replace(".ndjson", ".stderr"));
        exit.stderr_tail = String::from_utf8(stderr).expect("text");
    }
    exit
}

fn snapshots(agent: &dyn Agent, prefix: &str, at_least: usize) {
    let names = captures(prefix);
    assert!(names.len() >= at_least, "only {} captures begin with {prefix}", names.len());
    for name in names {
        let translated = checked(agent, &capture(&name), &exit_of(&name));
        ids_are_the_runs(&name, &translated);
        insta::with_settings!({ snapshot_path => "../snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name.trim_end_matches(".ndjson"), render(&translated));
        });
    }
}

/// Ids are this run's own, and nothing is begun twice under one id.
fn ids_are_the_runs(name: &str, translated: &Translated) {
    let mut begun = BTreeSet::new();
    for chunk in chunks(translated) {
        let event: Value = serde_json::from_str(&chunk.json).expect("json");
        for field in ["messageId", "toolCallId", "parentMessageId"] {
            if let Some(id) = event.get(field).and_then(Value::as_str) {
                assert!(id.starts_with("run-"), "{name}: {}", chunk.json);
            }
        }
        let id = match chunk.kind {
            EventKind::TextMessageStart | EventKind::ReasoningMessageStart | EventKind::ToolCallResult => {
                "messageId"
            }
            EventKind::ToolCallStart => "toolCallId",
            _ => continue,
        };
        assert!(begun.insert(event[id].as_str().map(str::to_owned)), "{name}: {}", chunk.json);
    }
}

#[test]
fn claude_code() {
    snapshots(&ClaudeCode, "claude-", 24);
}

#[test]
fn codex() {
    snapshots(&Codex, "codex-", 8);
}

/// The same work tells the same story, whether or not it was streamed.
#[test]
fn streaming_changes_nothing_in_the_transcript() {
    let transcript = |name: &str| {
        let translated =
            outlast_agents::testing::translate(&ClaudeCode, &context(), &capture(name), &exited(0));
        let chunks = chunks(&translated);
        let log = chunks.iter().enumerate().map(|(n, chunk)| (Seq(n as u64 + 1), chunk));
        let messages = fold_log(log);
        let told = messages.into_iter().map(|message| {
            let calls: Vec<_> = message.tool_calls.iter().map(|call| call.function.clone()).collect();
            (message.role, message.content, calls, message.error)
        });
        told.collect::<Vec<_>>()
    };
    let streamed = transcript("claude-2.1.332-partial-messages.ndjson");
    assert_eq!(streamed, transcript("claude-2.1.332-bypass-IS_SANDBOX.ndjson"));
    let roles: Vec<Role> = streamed.iter().map(|message| message.0).collect();
    assert_eq!(roles, [Role::Assistant, Role::Tool, Role::Assistant, Role::Tool, Role::Assistant]);
}
