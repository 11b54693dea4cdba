//! The events that Outlast itself writes.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::EventKind;
use crate::run::Usage;

/// The name of the `CUSTOM` event that is the first of every log.
pub const RUN_ACCEPTED: &str = "run.accepted";

/// An event on its way into the log: its JSON is what goes over the wire, and is never parsed again on that way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Its type.
    pub kind: EventKind,
    /// Its JSON, one object without line breaks.
    pub json: String,
}

/// Where an event came from. A replay of the journal compares only what came from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// Outlast itself.
    Host,
    /// A line of the journal.
    Journal {
        /// The byte at which the line begins.
        byte: u64,
        /// Which of the line's events this is, from 0.
        index: u32,
    },
}

/// An event that Outlast writes. Serialises to AG-UI's JSON.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
#[allow(missing_docs, reason = "names and meanings are the protocol's")]
pub enum Event<'a> {
    RunStarted {
        thread_id: Cow<'a, str>,
        run_id: Cow<'a, str>,
    },
    RunFinished {
        thread_id: Cow<'a, str>,
        run_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        #[serde(skip_serializing_if = "<[Usage]>::is_empty")]
        usage: Cow<'a, [Usage]>,
        /// AG-UI clients read the reason to finish from here.
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
    },
    RunError {
        message: Cow<'a, str>,
        code: Cow<'a, str>,
        #[serde(skip_serializing_if = "<[Usage]>::is_empty")]
        usage: Cow<'a, [Usage]>,
    },
    TextMessageStart {
        message_id: Cow<'a, str>,
        role: &'static str,
    },
    TextMessageContent {
        message_id: Cow<'a, str>,
        delta: Cow<'a, str>,
    },
    TextMessageEnd {
        message_id: Cow<'a, str>,
    },
    ToolCallStart {
        tool_call_id: Cow<'a, str>,
        tool_call_name: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
    },
    ToolCallArgs {
        tool_call_id: Cow<'a, str>,
        delta: Cow<'a, str>,
    },
    ToolCallEnd {
        tool_call_id: Cow<'a, str>,
    },
    ToolCallResult {
        message_id: Cow<'a, str>,
        tool_call_id: Cow<'a, str>,
        content: Cow<'a, str>,
        role: &'static str,
        /// `{"tanstack":{"state":"output-error"}}` where the tool failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
    },
    ReasoningStart {
        message_id: Cow<'a, str>,
    },
    ReasoningMessageStart {
        message_id: Cow<'a, str>,
        role: &'static str,
    },
    ReasoningMessageContent {
        message_id: Cow<'a, str>,
        delta: Cow<'a, str>,
    },
    ReasoningMessageEnd {
        message_id: Cow<'a, str>,
    },
    ReasoningEnd {
        message_id: Cow<'a, str>,
    },
    StepStarted {
        step_name: Cow<'a, str>,
    },
    StepFinished {
        step_name: Cow<'a, str>,
    },
    Raw {
        event: &'a RawValue,
        source: Cow<'a, str>,
    },
    Custom {
        name: Cow<'a, str>,
        value: Value,
    },
}

impl Event<'_> {
    /// The event's type.
    pub fn kind(&self) -> EventKind {
        match self {
            Event::RunStarted { .. } => EventKind::RunStarted,
            Event::RunFinished { .. } => EventKind::RunFinished,
            Event::RunError { .. } => EventKind::RunError,
            Event::TextMessageStart { .. } => EventKind::TextMessageStart,
            Event::TextMessageContent { .. } => EventKind::TextMessageContent,
            Event::TextMessageEnd { .. } => EventKind::TextMessageEnd,
            Event::ToolCallStart { .. } => EventKind::ToolCallStart,
            Event::ToolCallArgs { .. } => EventKind::ToolCallArgs,
            Event::ToolCallEnd { .. } => EventKind::ToolCallEnd,
            Event::ToolCallResult { .. } => EventKind::ToolCallResult,
            Event::ReasoningStart { .. } => EventKind::ReasoningStart,
            Event::ReasoningMessageStart { .. } => EventKind::ReasoningMessageStart,
            Event::ReasoningMessageContent { .. } => EventKind::ReasoningMessageContent,
            Event::ReasoningMessageEnd { .. } => EventKind::ReasoningMessageEnd,
            Event::ReasoningEnd { .. } => EventKind::ReasoningEnd,
            Event::StepStarted { .. } => EventKind::StepStarted,
            Event::StepFinished { .. } => EventKind::StepFinished,
            Event::Raw { .. } => EventKind::Raw,
            Event::Custom { .. } => EventKind::Custom,
        }
    }

    /// The event as it goes into the log.
    pub fn chunk(&self) -> Chunk {
        // Serialising plain data with text keys into memory cannot fail; were it to, the event would say so itself.
        let json = serde_json::to_string(self)
            .unwrap_or_else(|error| format!("{{\"type\":\"RAW\",\"event\":{:?}}}", error.to_string()));
        Chunk { kind: self.kind(), json }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_form() {
        let event = Event::TextMessageContent { message_id: "r-0".into(), delta: "a\n\0".into() };
        let chunk = event.chunk();
        assert_eq!(chunk.json, r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"r-0","delta":"a\n\u0000"}"#);
        assert_eq!(chunk.kind, EventKind::TextMessageContent);
        let custom = Event::Custom { name: RUN_ACCEPTED.into(), value: serde_json::json!({}) };
        assert_eq!(custom.chunk().json, r#"{"type":"CUSTOM","name":"run.accepted","value":{}}"#);
        let raw: Box<RawValue> = serde_json::from_str("{\"a\": 1}").expect("json");
        assert_eq!(
            Event::Raw { event: &raw, source: "x".into() }.chunk().json,
            r#"{"type":"RAW","event":{"a": 1},"source":"x"}"#
        );
    }
}
