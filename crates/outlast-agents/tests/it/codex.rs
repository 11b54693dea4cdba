//! Codex: what the captures do not show.

use outlast_agents::testing::secret;
use outlast_agents::{AgentExit, Codex};
use outlast_core::journal::sentinel;

use crate::support::{checked, events, exited, killed};

fn lines(lines: &[&str]) -> Vec<u8> {
    lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

const STARTED: &str = r#"{"type":"thread.started","thread_id":"s"}"#;
const COMPLETED: &str = r#"{"type":"turn.completed","usage":{"input_tokens":3,"output_tokens":4}}"#;

#[test]
fn items_of_every_type() {
    let output = lines(&[
        STARTED,
        r#"{"type":"item.completed","item":{"id":"item_0","type":"reasoning","text":"hmm"}}"#,
        r#"{"type":"item.started","item":{"id":"item_1","type":"agent_message","text":"He"}}"#,
        r#"{"type":"item.updated","item":{"id":"item_1","type":"agent_message","text":"Hell"}}"#,
        r#"{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"Hello"}}"#,
        r#"{"type":"item.started","item":{"id":"item_2","type":"mcp_tool_call","server":"gh","tool":"find","arguments":{"q":1},"result":null,"error":null,"status":"in_progress"}}"#,
        r#"{"type":"item.completed","item":{"id":"item_2","type":"mcp_tool_call","server":"gh","tool":"find","arguments":{"q":1},"result":null,"error":{"message":"no"},"status":"failed"}}"#,
        r#"{"type":"item.completed","item":{"id":"item_3","type":"file_change","changes":[{"path":"a","kind":"add"}],"status":"completed"}}"#,
        r#"{"type":"item.started","item":{"id":"item_4","type":"web_search","query":""}}"#,
        r#"{"type":"item.completed","item":{"id":"item_4","type":"web_search","query":"rust"}}"#,
        r#"{"type":"item.updated","item":{"id":"item_5","type":"todo_list","items":[{"text":"x","completed":false}]}}"#,
        r#"{"type":"item.completed","item":{"id":"item_6","type":"command_execution","command":"false","aggregated_output":"","exit_code":1,"status":"failed"}}"#,
        r#"{"type":"item.completed","item":{"id":"item_7","type":"hologram"}}"#,
        COMPLETED,
    ]);
    let translated = checked(&Codex, &output, &exited(0));
    assert_eq!(
        events(&translated),
        [
            r#"{"type":"CUSTOM","name":"codex.session-id","value":{"sessionId":"s"}}"#,
            r#"{"type":"REASONING_START","messageId":"run-item_0"}"#,
            r#"{"type":"REASONING_MESSAGE_START","messageId":"run-item_0","role":"reasoning"}"#,
            r#"{"type":"REASONING_MESSAGE_CONTENT","messageId":"run-item_0","delta":"hmm"}"#,
            r#"{"type":"REASONING_MESSAGE_END","messageId":"run-item_0"}"#,
            r#"{"type":"REASONING_END","messageId":"run-item_0"}"#,
            r#"{"type":"TEXT_MESSAGE_START","messageId":"run-item_1","role":"assistant"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"run-item_1","delta":"He"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"run-item_1","delta":"ll"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"run-item_1","delta":"o"}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"run-item_1"}"#,
            r#"{"type":"TOOL_CALL_START","toolCallId":"run-item_2","toolCallName":"mcp__gh__find"}"#,
            r#"{"type":"TOOL_CALL_ARGS","toolCallId":"run-item_2","delta":"{\"q\":1}"}"#,
            r#"{"type":"TOOL_CALL_END","toolCallId":"run-item_2"}"#,
            r#"{"type":"TOOL_CALL_RESULT","messageId":"run-0","toolCallId":"run-item_2","content":"{\"error\":{\"message\":\"no\"}}","role":"tool","metadata":{"tanstack":{"state":"output-error"}}}"#,
            r#"{"type":"TOOL_CALL_START","toolCallId":"run-item_3","toolCallName":"file_change"}"#,
            r#"{"type":"TOOL_CALL_ARGS","toolCallId":"run-item_3","delta":"{\"changes\":[{\"path\":\"a\",\"kind\":\"add\"}]}"}"#,
            r#"{"type":"TOOL_CALL_END","toolCallId":"run-item_3"}"#,
            r#"{"type":"TOOL_CALL_RESULT","messageId":"run-1","toolCallId":"run-item_3","content":"{\"status\":\"completed\"}","role":"tool"}"#,
            r#"{"type":"TOOL_CALL_START","toolCallId":"run-item_4","toolCallName":"web_search"}"#,
            r#"{"type":"TOOL_CALL_ARGS","toolCallId":"run-item_4","delta":"{\"query\":\"rust\"}"}"#,
            r#"{"type":"TOOL_CALL_END","toolCallId":"run-item_4"}"#,
            r#"{"type":"TOOL_CALL_RESULT","messageId":"run-2","toolCallId":"run-item_4","content":"{\"status\":\"completed\"}","role":"tool"}"#,
            r#"{"type":"ACTIVITY_SNAPSHOT","messageId":"run-item_5","activityType":"todo_list","content":{"items":[{"text":"x","completed":false}]},"replace":true}"#,
            r#"{"type":"TOOL_CALL_START","toolCallId":"run-item_6","toolCallName":"command_execution"}"#,
            r#"{"type":"TOOL_CALL_ARGS","toolCallId":"run-item_6","delta":"{\"command\":\"false\"}"}"#,
            r#"{"type":"TOOL_CALL_END","toolCallId":"run-item_6"}"#,
            r#"{"type":"TOOL_CALL_RESULT","messageId":"run-3","toolCallId":"run-item_6","content":"{\"aggregated_output\":\"\",\"exit_code\":1,\"status\":\"failed\"}","role":"tool","metadata":{"tanstack":{"state":"output-error"}}}"#,
            r#"{"type":"RAW","event":{"type":"item.completed","item":{"id":"item_7","type":"hologram"}},"source":"codex"}"#,
        ]
    );
    assert_eq!(translated.ended.failure, None);
}

#[test]
fn items_of_a_second_process_have_ids_of_their_own() {
    let message = r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"x"}}"#;
    let begun =
        r#"{"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"sleep 9"}}"#;
    let note = sentinel::restart_note(&secret());
    let output = lines(&[STARTED, message, begun, &note, STARTED, message, STARTED, message, COMPLETED]);
    let translated = checked(&Codex, &output, &exited(0));
    let started = events(&translated).into_iter().filter(|json| json.contains("_START"));
    let ids: Vec<&str> = started.filter_map(|json| json.split('"').nth(7)).collect();
    assert_eq!(ids, ["run-item_0", "run-item_1", "run-1-item_0", "run-2-item_0"]);
}

#[test]
fn an_error_is_a_failure_only_if_the_turn_is() {
    let error = r#"{"type":"error","message":"Reconnecting... 1/2"}"#;
    let started = r#"{"type":"turn.started"}"#;
    let failure = |output: &[&str], exit: &AgentExit| {
        checked(&Codex, &lines(output), exit).ended.failure.map(|failure| failure.message)
    };
    assert_eq!(failure(&[started, error, COMPLETED], &exited(0)), None);
    assert_eq!(failure(&[started, error], &exited(1)).as_deref(), Some("Reconnecting... 1/2"));
    assert_eq!(failure(&[started, error], &killed(9)).as_deref(), Some("killed by SIGKILL"));
    let failed = r#"{"type":"turn.failed","error":{"message":"no more tokens"}}"#;
    assert_eq!(failure(&[started, failed], &exited(1)).as_deref(), Some("no more tokens"));
    assert_eq!(
        failure(&[started], &exited(0)).as_deref(),
        Some("exited with status 0 without completing its turn")
    );
}
