//! Claude Code: what the captures do not show.

use outlast_agents::testing::secret;
use outlast_agents::{AgentExit, ClaudeCode};
use outlast_core::journal::sentinel;
use serde_json::json;

use crate::support::{capture, checked, events, exited, killed};

fn lines(lines: &[&str]) -> Vec<u8> {
    lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

const DONE: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"done"}"#;

#[test]
fn a_lost_session_is_not_the_outcome_of_the_fresh_one() {
    let mut output = capture("claude-2.1.332-resume-unknown-session.ndjson");
    output.extend(format!("{}\n", sentinel::restart_note(&secret())).bytes());
    output.extend(capture("claude-2.1.332-session-id-turn1.ndjson"));
    let translated = checked(&ClaudeCode, &output, &exited(0));
    assert_eq!(translated.ended.failure, None);
    assert!(
        events(&translated)[0]
            .starts_with(r#"{"type":"CUSTOM","name":"outlast.session-restarted","value":{"reason":"#)
    );
    assert!(translated.session.expect("session").starts_with("091e599e"));

    let begun = output.len() - capture("claude-2.1.332-session-id-turn1.ndjson").len();
    let failure = checked(&ClaudeCode, &output[..begun], &killed(9)).ended.failure;
    assert_eq!(failure.expect("failure").message, "killed by SIGKILL");
}

#[test]
fn a_streamed_message_that_broke_off_is_completed_from_its_own_line() {
    let output = lines(&[
        r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"m"}}}"#,
        r#"{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}}"#,
        r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"h\u00e4l"}}}"#,
        r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"hällo"}]}}"#,
        // Another message begins without the end of the first.
        r#"{"type":"assistant","message":{"id":"n","content":[{"type":"text","text":"next"}]}}"#,
        DONE,
    ]);
    assert_eq!(
        events(&checked(&ClaudeCode, &output, &exited(0))),
        [
            r#"{"type":"TEXT_MESSAGE_START","messageId":"run-m","role":"assistant"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"run-m","delta":"häl"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"run-m","delta":"lo"}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"run-m"}"#,
            r#"{"type":"TEXT_MESSAGE_START","messageId":"run-n","role":"assistant"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"run-n","delta":"next"}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"run-n"}"#,
        ]
    );
}

#[test]
fn texts_around_tool_calls_of_one_message_have_ids_of_their_own() {
    let output = lines(&[
        r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"one"},{"type":"tool_use","id":"t1","name":"Read","input":{"a": 1}}]}}"#,
        r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"two"},{"type":"tool_use","id":"t2","name":"Read"}]}}"#,
        r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t2","name":"Read"}]}}"#,
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"a"},{"type":"image","source":{}}]},{"type":"tool_result","tool_use_id":"t2","content":null,"is_error":true}]}}"#,
        DONE,
    ]);
    let translated = checked(&ClaudeCode, &output, &exited(0));
    let told: Vec<&str> =
        events(&translated).into_iter().filter(|json| !json.contains("CONTENT\"")).collect();
    assert_eq!(
        told,
        [
            r#"{"type":"TEXT_MESSAGE_START","messageId":"run-m","role":"assistant"}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"run-m"}"#,
            r#"{"type":"TOOL_CALL_START","toolCallId":"run-t1","toolCallName":"Read","parentMessageId":"run-m"}"#,
            r#"{"type":"TOOL_CALL_ARGS","toolCallId":"run-t1","delta":"{\"a\": 1}"}"#,
            r#"{"type":"TOOL_CALL_END","toolCallId":"run-t1"}"#,
            r#"{"type":"TEXT_MESSAGE_START","messageId":"run-m-1","role":"assistant"}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"run-m-1"}"#,
            r#"{"type":"TOOL_CALL_START","toolCallId":"run-t2","toolCallName":"Read","parentMessageId":"run-m-1"}"#,
            r#"{"type":"TOOL_CALL_ARGS","toolCallId":"run-t2","delta":"{}"}"#,
            r#"{"type":"TOOL_CALL_END","toolCallId":"run-t2"}"#,
            r#"{"type":"TOOL_CALL_RESULT","messageId":"run-0","toolCallId":"run-t1","content":"a\n[image]","role":"tool"}"#,
            r#"{"type":"TOOL_CALL_RESULT","messageId":"run-1","toolCallId":"run-t2","content":"","role":"tool","metadata":{"tanstack":{"state":"output-error"}}}"#,
        ]
    );
}

#[test]
fn what_is_not_known_is_kept() {
    let output = [
        b"Warning: not JSON\n".as_slice(),
        b"{\"type\":\"brand_new\",\"x\":[1, 2]}\r\n",
        b"{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"content\":[{\"type\":\"hologram\"}]}}\n",
        b"{\"type\":7}\n\n   \n[1]\n",
        // Half of an emoji, as JSON.stringify prints it.
        br#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"cut \ud83d"}]}}"#,
        b"\n{\"type\":\"odd\",\"text\":\"\\udc00\"}\n",
        b"not text: \xff\n",
        DONE.as_bytes(),
    ]
    .concat();
    let translated = checked(&ClaudeCode, &output, &exited(0));
    assert_eq!(
        events(&translated),
        [
            r#"{"type":"RAW","event":"Warning: not JSON","source":"claude-code"}"#,
            r#"{"type":"RAW","event":{"type":"brand_new","x":[1, 2]},"source":"claude-code"}"#,
            r#"{"type":"RAW","event":{"type":"assistant","message":{"id":"m","content":[{"type":"hologram"}]}},"source":"claude-code"}"#,
            r#"{"type":"RAW","event":{"type":7},"source":"claude-code"}"#,
            r#"{"type":"RAW","event":[1],"source":"claude-code"}"#,
            "{\"type\":\"TOOL_CALL_RESULT\",\"messageId\":\"run-0\",\"toolCallId\":\"run-t\",\"content\":\"cut \u{FFFD}\",\"role\":\"tool\"}",
            "{\"type\":\"RAW\",\"event\":{\"type\":\"odd\",\"text\":\"\u{FFFD}\"},\"source\":\"claude-code\"}",
            "{\"type\":\"RAW\",\"event\":\"not text: \u{FFFD}\",\"source\":\"claude-code\"}",
            r#"{"type":"CUSTOM","name":"outlast.undecodable-line","value":{"base64":"bm90IHRleHQ6IP8="}}"#,
        ]
    );
    assert_eq!(translated.ended.result, Some(json!("done")));
}

#[test]
fn the_exit_counts_where_claude_code_has_no_word_of_its_own() {
    let failure = |output: &[u8], exit: &AgentExit| {
        checked(&ClaudeCode, output, exit).ended.failure.map(|failure| (failure.code, failure.message))
    };
    let mut refused = exited(1);
    refused.stderr_tail =
        "Error: Session ID 091e599e-4049-4de0-a2fa-b8f5c142aa75 is already in use.\n".into();
    let failed = |message: &str| Some(("agent_failed".to_owned(), message.to_owned()));
    assert_eq!(
        failure(b"", &refused),
        failed(
            "exited with status 1: Error: Session ID 091e599e-4049-4de0-a2fa-b8f5c142aa75 is already in use."
        )
    );
    assert_eq!(
        failure(b"", &exited(0)),
        failed("exited with status 0 without saying how its work went (no result line)")
    );
    assert_eq!(failure(&lines(&[DONE]), &killed(9)), failed("killed by SIGKILL"));
    assert_eq!(failure(&lines(&[DONE]), &exited(0)), None);
}

#[test]
fn numbers_as_ids_do_not_meet_those_that_are_drawn() {
    let output = lines(&[
        r#"{"type":"assistant","message":{"id":"0","content":[{"type":"thinking","thinking":"x"},{"type":"text","text":"y"}]}}"#,
        DONE,
    ]);
    let translated = checked(&ClaudeCode, &output, &exited(0));
    let started = events(&translated).into_iter().filter(|json| json.contains("MESSAGE_START"));
    let ids: Vec<&str> = started.filter_map(|json| json.split('"').nth(7)).collect();
    assert_eq!(ids, ["run-0", "run-own-0"]);
}
