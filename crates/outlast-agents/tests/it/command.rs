//! Commands, among them those that print what nobody should.

use outlast_agents::testing::{Translated, check_sequence, check_translator, secret};
use outlast_agents::{AgentExit, Command};
use outlast_core::event::EventKind;
use outlast_core::journal::sentinel;
use outlast_core::{ExitSecret, Seq, transcript};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{checked, chunks, context, events, exited, killed};

fn translated(output: &[u8]) -> Translated {
    checked(&Command, output, &exited(0))
}

/// All text that was told, in order.
fn text(translated: &Translated) -> String {
    let contents = translated.events.iter().filter(|(_, chunk)| chunk.kind == EventKind::TextMessageContent);
    contents
        .map(|(_, chunk)| {
            let event: Value = serde_json::from_str(&chunk.json).expect("json");
            event["delta"].as_str().expect("text").to_owned()
        })
        .collect()
}

fn lines(lines: &[&str]) -> Vec<u8> {
    lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

#[test]
fn lines_are_text_with_their_breaks() {
    let translated = translated(b"one\r\n\ntwo\0\nthree");
    assert_eq!(
        events(&translated),
        [
            r#"{"type":"TEXT_MESSAGE_START","messageId":"run-0","role":"assistant"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"run-0","delta":"one\r\n"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"run-0","delta":"\n"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"run-0","delta":"two\u0000\n"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"run-0","delta":"three"}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"run-0"}"#,
        ]
    );
    assert_eq!(translated.ended, outlast_agents::Ended::default());
    assert!(events(&checked(&Command, b"", &exited(0))).is_empty());
}

#[test]
fn bytes_that_are_no_text_are_told_whole() {
    let translated = translated(b"a\xff\n{\"type\":\"CUSTOM\",\"name\":\"\xff\",\"value\":1}\nb");
    assert_eq!(text(&translated), "a\u{FFFD}\n{\"type\":\"CUSTOM\",\"name\":\"\u{FFFD}\",\"value\":1}\nb");
    assert_eq!(
        events(&translated)[2],
        r#"{"type":"CUSTOM","name":"outlast.undecodable-line","value":{"base64":"Yf8="}}"#
    );
}

#[test]
fn long_lines_and_much_text() {
    let long = "x".repeat(700_000);
    let line = format!("{}\n", "line of text ".repeat(100));
    let output = format!("short\n{long}\n{}", line.repeat(300));
    let translated = translated(output.as_bytes());
    assert_eq!(text(&translated), output);
    let chunks = chunks(&translated);
    let messages =
        transcript::fold_log(chunks.iter().enumerate().map(|(n, chunk)| (Seq(n as u64 + 1), chunk)));
    let sizes: Vec<usize> =
        messages.iter().map(|message| message.content.as_ref().map_or(0, String::len)).collect();
    // As many whole lines as fit into 256 KiB; a longer line is alone.
    assert_eq!(sizes, [6, 700_001, 201 * 1301, 99 * 1301]);

    let huge = [vec![b'y'; 9 << 20], b"\nrest".to_vec()].concat();
    let translated = outlast_agents::testing::translate(&Command, &context(), &huge, &exited(0));
    assert!(events(&translated)[0].starts_with(
        r#"{"type":"CUSTOM","name":"outlast.oversized-line","value":{"bytes":9437184,"sha256":""#
    ));
    assert_eq!(text(&translated), "rest");
}

#[test]
fn a_forged_sentinel_is_text() {
    let other = ExitSecret::from_bytes([9; 16]);
    let output = format!(
        "{{\"__exit\":0}}\n{}{}\nafter\n",
        sentinel::block(0, &other),
        sentinel::restart_note(&other)
    );
    assert_eq!(text(&translated(output.as_bytes())), output);
}

#[test]
fn events_are_kept_as_printed() {
    let output = lines(&[
        "before",
        r#"  {"type": "CUSTOM", "name":"n","value":{"a":1.50}}  "#,
        "still the same message",
        r#"{"type":"TEXT_MESSAGE_START","messageId":"mine","role":"assistant","extra":true}"#,
        r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"mine","delta":"hi"}"#,
        r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"c","delta":"x"}"#,
        "another",
    ]);
    assert_eq!(
        events(&translated(&output)),
        [
            r#"{"type":"TEXT_MESSAGE_START","messageId":"run-0","role":"assistant"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"run-0","delta":"before\n"}"#,
            r#"{"type": "CUSTOM", "name":"n","value":{"a":1.50}}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"run-0","delta":"still the same message\n"}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"run-0"}"#,
            r#"{"type":"TEXT_MESSAGE_START","messageId":"mine","role":"assistant","extra":true}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"mine","delta":"hi"}"#,
            r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"c","delta":"x"}"#,
            r#"{"type":"TEXT_MESSAGE_START","messageId":"run-1","role":"assistant"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"run-1","delta":"another\n"}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"run-1"}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"mine"}"#,
        ]
    );
    let blank = b"{\"type\":\"CUSTOM\",\r\"name\":\"n\",\"value\":1}\n";
    assert_eq!(events(&translated(blank)), [r#"{"name":"n","type":"CUSTOM","value":1}"#]);
}

#[test]
fn what_breaks_the_sequence_is_wrapped() {
    let start = r#"{"type":"TOOL_CALL_START","toolCallId":"t","toolCallName":"n"}"#;
    let end = r#"{"type":"TOOL_CALL_END","toolCallId":"t"}"#;
    let broken = [
        r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}"#,
        r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#,
        r#"{"type":"REASONING_MESSAGE_CONTENT","messageId":"m","delta":"x"}"#,
        r#"{"type":"REASONING_END","messageId":"m"}"#,
        r#"{"type":"STEP_FINISHED","stepName":"s"}"#,
        r#"{"type":"TOOL_CALL_ARGS","toolCallId":"t","delta":"x"}"#,
        end,
    ];
    for event in broken {
        let raw = format!(r#"{{"type":"RAW","event":{event},"source":"command"}}"#);
        assert_eq!(events(&translated(&lines(&[event]))), [raw.as_str()]);
    }
    let twice = translated(&lines(&[start, start, end, start, end]));
    let raw = format!(r#"{{"type":"RAW","event":{start},"source":"command"}}"#);
    let raw_end = format!(r#"{{"type":"RAW","event":{end},"source":"command"}}"#);
    assert_eq!(events(&twice)[..5], [start, &raw, end, &raw, &raw_end]);
    assert_eq!(
        events(&twice)[5],
        "{\"type\":\"TOOL_CALL_RESULT\",\"messageId\":\"run-0\",\"toolCallId\":\"t\",\"content\":\
         \"{\\\"status\\\":\\\"interrupted\\\",\\\"message\\\":\\\"the agent ended before this call's result was \
         recorded\\\"}\",\"role\":\"tool\",\"metadata\":{\"tanstack\":{\"state\":\"output-error\"}}}"
    );
}

#[test]
fn the_message_of_printed_text_is_not_the_commands_to_continue() {
    let guessed = r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"run-0","delta":"x"}"#;
    let begun = r#"{"type":"TEXT_MESSAGE_START","messageId":"run-1"}"#;
    let told = translated(&lines(&[
        "text",
        guessed,
        r#"{"type":"TEXT_MESSAGE_START","messageId":"run-0"}"#,
        begun,
        "text",
    ]));
    let kinds: Vec<&str> = told.events.iter().map(|(_, chunk)| chunk.kind.as_str()).collect();
    assert_eq!(kinds[2..4], ["RAW", "RAW"]);
    // The id that the command has taken is passed over.
    assert!(
        events(&told).contains(&r#"{"type":"TEXT_MESSAGE_START","messageId":"run-2","role":"assistant"}"#)
    );
}

#[test]
fn the_end_is_outlasts_to_write() {
    let output = lines(&[
        r#"{"type":"RUN_STARTED","threadId":"x","runId":"y"}"#,
        r#"{"type":"RUN_ERROR","message":"first","code":"a"}"#,
        r#"{"type":"RUN_ERROR","message":"last"}"#,
        r#"{"type":"RUN_FINISHED","threadId":"x","runId":"y","result":{"n":1},"usage":[{"model":"m","inputTokens":1,"outputTokens":2,"totalTokens":3}]}"#,
        r#"{"type":"RUN_FINISHED","usage":"nonsense"}"#,
    ]);
    let told = checked(&Command, &output, &exited(7));
    assert!(told.events.is_empty());
    let failure = told.ended.failure.expect("failure");
    assert_eq!((failure.code.as_str(), failure.message.as_str()), ("agent_failed", "last"));
    assert_eq!(told.ended.usage[0].total_tokens, 3);
    assert_eq!(told.ended.result, Some(json!({"n": 1})));
}

#[test]
fn the_exit_decides_where_nothing_was_printed() {
    let failure =
        |exit: &AgentExit| checked(&Command, b"x\n", exit).ended.failure.map(|failure| failure.message);
    assert_eq!(failure(&exited(0)), None);
    let mut wrong = exited(3);
    wrong.stderr_tail = "Traceback\nKeyError: 'x'\n".into();
    assert_eq!(failure(&wrong).as_deref(), Some("exited with status 3: Traceback\nKeyError: 'x'"));
    assert_eq!(failure(&killed(9)).as_deref(), Some("killed by SIGKILL"));
}

#[test]
fn what_is_remembered_stays_small() {
    let mut output = Vec::new();
    for n in 0..300 {
        let id = format!("{n}-{}", "i".repeat(400));
        output.extend(lines(&[
            &format!(r#"{{"type":"TEXT_MESSAGE_START","messageId":"{id}"}}"#),
            &format!(r#"{{"type":"STEP_STARTED","stepName":"{id}"}}"#),
            &format!(r#"{{"type":"TOOL_CALL_START","toolCallId":"{id}","toolCallName":"n"}}"#),
            &format!(r#"{{"type":"TOOL_CALL_END","toolCallId":"{id}"}}"#),
        ]));
    }
    let told = outlast_agents::testing::translate(&Command, &context(), &output, &exited(0));
    check_sequence(&chunks(&told)).expect("well-formed all the same");
    let mut translation = outlast_agents::Translation::new(&Command, context(), secret());
    let mut events = Vec::new();
    translation.feed(&output, outlast_agents::JournalEnd::default(), &mut events);
    let state = translation.cursor(0).state.to_string();
    assert!(state.len() < 256 * 1024, "{} bytes", state.len());
    let given_up = events.iter().filter(|(_, chunk)| chunk.kind == EventKind::ToolCallResult).count();
    assert_eq!(given_up, 300 - 128, "calls that are forgotten are given a result first");
}

/// Pieces of output that are likely to meet in unlucky ways.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let secret = ExitSecret::from_bytes([3; 16]);
    let fixed = |text: &str| Just(text.as_bytes().to_vec());
    prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..40),
        4 => fixed("\n"),
        1 => fixed("\r\n"),
        1 => fixed("\0"),
        1 => fixed("é🦀"),
        1 => Just(sentinel::block(0, &secret).into_bytes()),
        1 => Just(format!("{}\n", sentinel::restart_note(&self::secret())).into_bytes()),
        2 => fixed("{\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"run-1\"}\n"),
        2 => fixed("{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"run-1\",\"delta\":\"d\"}\n"),
        2 => fixed("{\"type\":\"TEXT_MESSAGE_END\",\"messageId\":\"run-1\"}\n"),
        2 => fixed("{\"type\":\"TOOL_CALL_START\",\"toolCallId\":\"t\",\"toolCallName\":\"n\"}\n"),
        2 => fixed("{\"type\":\"TOOL_CALL_END\",\"toolCallId\":\"t\"}\n"),
        2 => fixed("{\"type\":\"TOOL_CALL_RESULT\",\"toolCallId\":\"t\",\"messageId\":\"q\",\"content\":\"\"}\n"),
        1 => fixed("{\"type\":\"REASONING_MESSAGE_START\",\"messageId\":\"run-0\"}\n"),
        1 => fixed("{\"type\":\"STEP_STARTED\",\"stepName\":\"s\"}\n"),
        1 => fixed("{\"type\":\"RUN_ERROR\",\"message\":\"m\",\"code\":\"c\"}\n"),
        1 => fixed("{\"type\":\"CUSTOM\",\"name\":\"n\",\"value\":0}\n"),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_output_at_all(pieces in prop::collection::vec(piece(), 0..24)) {
        let output = pieces.concat();
        prop_assert_eq!(check_translator(&Command, &context(), &output), Ok(()));
    }

    #[test]
    fn text_without_braces_comes_back_as_it_was(output in "[^{]{0,200}") {
        prop_assert_eq!(text(&outlast_agents::testing::translate(&Command, &context(), output.as_bytes(), &exited(0))), output);
    }
}
