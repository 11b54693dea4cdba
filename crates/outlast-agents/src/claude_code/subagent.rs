//! What sub-agents say and do, told apart from what the agent itself does.

use outlast_core::event::{Chunk, Event, EventKind};
use serde::Serialize;

use super::line::Message;
use super::state::State;
use crate::Emitter;
use crate::common::json::text;

/// The name of the event that holds an event of a sub-agent.
const NAME: &str = "claude-code.subagent";

#[derive(Serialize)]
struct Wrapped<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'static str,
    value: Inner<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inner<'a> {
    parent_tool_call_id: &'a str,
    event: &'a Event<'a>,
}

/// Adds an event of the agent itself, or of the sub-agent of a tool call.
pub(super) fn emit(within: Option<&str>, event: &Event<'_>, out: &mut Emitter<'_>) {
    let Some(parent_tool_call_id) = within else {
        return out.emit(event);
    };
    let wrapped =
        Wrapped { kind: EventKind::Custom.as_str(), name: NAME, value: Inner { parent_tool_call_id, event } };
    let json = serde_json::to_string(&wrapped).expect("plain data with text keys is JSON");
    out.emit_chunk(Chunk { kind: EventKind::Custom, json });
}

impl State {
    /// Tells a sub-agent's message; false if a part of it is not known.
    pub(super) fn subagent(
        &mut self,
        parent: &str,
        role: &'static str,
        message: Message<'_>,
        out: &mut Emitter<'_>,
    ) -> bool {
        let within = out.own_id(parent);
        let blocks = message.content.into_blocks();
        let mut known = !blocks.is_empty();
        for block in blocks {
            known &= match block.kind.as_ref() {
                "text" => {
                    let id = out.next_id();
                    let delta = text(&block.text).unwrap_or_default();
                    let message_id = || id.as_str().into();
                    for event in [
                        Event::TextMessageStart { message_id: message_id(), role },
                        Event::TextMessageContent { message_id: message_id(), delta: delta.into() },
                        Event::TextMessageEnd { message_id: message_id() },
                    ] {
                        emit(Some(&within), &event, out);
                    }
                    true
                }
                "thinking" => {
                    let thought = text(&block.thinking).unwrap_or_default();
                    if !thought.is_empty() {
                        let id = out.next_id();
                        let message_id = || id.as_str().into();
                        for event in [
                            Event::ReasoningStart { message_id: message_id() },
                            Event::ReasoningMessageStart { message_id: message_id(), role: "reasoning" },
                            Event::ReasoningMessageContent {
                                message_id: message_id(),
                                delta: thought.into(),
                            },
                            Event::ReasoningMessageEnd { message_id: message_id() },
                            Event::ReasoningEnd { message_id: message_id() },
                        ] {
                            emit(Some(&within), &event, out);
                        }
                    }
                    true
                }
                _ => self.call_or_result(&block, Some(within.clone()), None, out),
            };
        }
        known
    }
}
