//! Whether a line that an agent printed is an AG-UI event.

use serde_json::{Map, Value};

use super::EventKind;

/// Why a line is text and no event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAnEvent;

/// What a field must be.
enum Must {
    Text,
    FilledText,
    Array,
    Any,
}

/// Reads a line as an AG-UI event: a JSON object whose `type` is one of the protocol's, with the fields that this type
/// must have. Further fields are the agent's business and are kept.
pub fn check_printed(line: &[u8]) -> Result<(EventKind, Map<String, Value>), NotAnEvent> {
    if !line.trim_ascii_start().starts_with(b"{") {
        return Err(NotAnEvent);
    }
    let object: Map<String, Value> = serde_json::from_slice(line).map_err(|_| NotAnEvent)?;
    let kind = object.get("type").and_then(Value::as_str).and_then(EventKind::parse).ok_or(NotAnEvent)?;
    let fits = required(kind).iter().all(|(name, must)| match (object.get(*name), must) {
        (Some(Value::String(_)), Must::Text)
        | (Some(Value::Array(_)), Must::Array)
        | (Some(_), Must::Any) => true,
        (Some(Value::String(text)), Must::FilledText) => !text.is_empty(),
        _ => false,
    });
    if fits { Ok((kind, object)) } else { Err(NotAnEvent) }
}

fn required(kind: EventKind) -> &'static [(&'static str, Must)] {
    use EventKind as K;
    use Must::{Any, Array, FilledText, Text};
    match kind {
        // These three are Outlast's to write. An agent that prints them need not know its run's ids.
        K::RunStarted | K::RunFinished => &[],
        K::RunError => &[("message", Text)],
        K::StepStarted | K::StepFinished => &[("stepName", FilledText)],
        K::TextMessageStart | K::TextMessageEnd => &[("messageId", FilledText)],
        K::TextMessageContent => &[("messageId", FilledText), ("delta", Text)],
        K::ToolCallStart => &[("toolCallId", FilledText), ("toolCallName", FilledText)],
        K::ToolCallArgs => &[("toolCallId", FilledText), ("delta", Text)],
        K::ToolCallEnd => &[("toolCallId", FilledText)],
        K::ToolCallResult => &[("messageId", FilledText), ("toolCallId", FilledText), ("content", Text)],
        K::ReasoningStart | K::ReasoningEnd | K::ReasoningMessageStart | K::ReasoningMessageEnd => {
            &[("messageId", FilledText)]
        }
        K::ReasoningMessageContent => &[("messageId", FilledText), ("delta", Text)],
        K::ReasoningEncryptedValue => &[("entityId", FilledText), ("encryptedValue", Text)],
        K::TextMessageChunk | K::ToolCallChunk | K::ReasoningMessageChunk => &[],
        K::StateSnapshot => &[("snapshot", Any)],
        K::StateDelta => &[("delta", Array)],
        K::MessagesSnapshot => &[("messages", Array)],
        K::ActivitySnapshot => &[("messageId", FilledText), ("activityType", FilledText), ("content", Any)],
        K::ActivityDelta => &[("messageId", FilledText), ("activityType", FilledText), ("patch", Array)],
        K::Raw => &[("event", Any)],
        K::Custom => &[("name", FilledText), ("value", Any)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_text() {
        let ok = |line: &str| check_printed(line.as_bytes()).map(|(kind, _)| kind);
        assert_eq!(ok(r#"{"type":"CUSTOM","name":"x","value":null}"#), Ok(EventKind::Custom));
        assert_eq!(
            ok(r#"{"delta":"","messageId":"m","type":"TEXT_MESSAGE_CONTENT"}"#),
            Ok(EventKind::TextMessageContent)
        );
        assert_eq!(ok(r#"{"type":"RUN_FINISHED"}"#), Ok(EventKind::RunFinished));
        for text in [
            "",
            "hello",
            "[]",
            "{",
            r#"{"type":"NOPE"}"#,
            r#"{"type":"CUSTOM"}"#,
            r#"{"type":7}"#,
            r#""CUSTOM""#,
            r#"{"type":"TEXT_MESSAGE_START"}"#,
            r#"{"type":"TEXT_MESSAGE_START","messageId":""}"#,
            r#"{"type":"TOOL_CALL_ARGS","toolCallId":"t","delta":{}}"#,
        ] {
            assert_eq!(ok(text), Err(NotAnEvent), "{text}");
        }
    }
}
