//! Codex's items: messages, thoughts, tool calls.

use std::borrow::Cow;

use outlast_core::event::{Chunk, Event, EventKind};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::line::Item;
use super::state::{Growing, State};
use crate::Emitter;
use crate::common::calls::output_error;
use crate::common::json::text;

/// How far an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Started,
    Updated,
    Completed,
}

#[derive(Serialize)]
struct CommandArguments<'a> {
    command: &'a str,
}

#[derive(Serialize)]
struct CommandResult<'a> {
    aggregated_output: &'a str,
    exit_code: Option<i64>,
    status: &'a str,
}

#[derive(Serialize)]
struct TodoList<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(rename = "messageId")]
    message_id: &'a str,
    #[serde(rename = "activityType")]
    activity_type: &'static str,
    content: Todos<'a>,
    replace: bool,
}

#[derive(Serialize)]
struct Todos<'a> {
    items: &'a RawValue,
}

impl State {
    /// Takes an item; false if it is of no known type.
    pub(super) fn item(&mut self, stage: Stage, item: &Item<'_>, out: &mut Emitter<'_>) -> bool {
        self.items = true;
        let id = self.item_id(&item.id.0, out);
        match item.kind.0.as_ref() {
            "agent_message" => self.message(stage, &id, text(&item.text).unwrap_or_default(), out),
            "reasoning" => {
                if stage == Stage::Completed {
                    self.end_growing(out);
                    reasoning(&id, text(&item.text).unwrap_or_default(), out);
                }
            }
            "error" => {
                let message = text(&item.message).unwrap_or_default();
                let value = json!({"message": message});
                out.emit(&Event::Custom { name: "codex.warning".into(), value });
            }
            "todo_list" => {
                let Some(items) = item.items else {
                    return false;
                };
                todo_list(&id, items, out);
            }
            "command_execution" | "mcp_tool_call" | "file_change" | "web_search" => {
                self.end_growing(out);
                self.call(stage, &id, item, out);
            }
            _ => return false,
        }
        true
    }

    /// Items are numbered anew in every process, and so in every run; within a run they may be once the agent was
    /// started afresh.
    fn item_id(&self, id: &str, out: &Emitter<'_>) -> String {
        match self.generation {
            0 => out.own_id(id),
            generation => out.own_id(&format!("{generation}-{id}")),
        }
    }

    fn message(&mut self, stage: Stage, id: &str, whole: &str, out: &mut Emitter<'_>) {
        if self.growing.as_ref().is_some_and(|growing| growing.id != id) {
            self.end_growing(out);
        }
        if self.growing.is_none() {
            if whole.is_empty() {
                return;
            }
            out.emit(&Event::TextMessageStart { message_id: id.into(), role: "assistant" });
        }
        let growing = self.growing.get_or_insert_with(|| Growing { id: id.to_owned(), told: 0 });
        let rest = usize::try_from(growing.told).ok().and_then(|told| whole.get(told..)).unwrap_or_default();
        if !rest.is_empty() {
            growing.told += rest.len() as u64;
            out.emit(&Event::TextMessageContent { message_id: id.into(), delta: rest.into() });
        }
        if stage == Stage::Completed {
            self.end_growing(out);
        }
    }

    pub(super) fn end_growing(&mut self, out: &mut Emitter<'_>) {
        if let Some(growing) = self.growing.take() {
            out.emit(&Event::TextMessageEnd { message_id: growing.id.into() });
        }
    }

    fn call(&mut self, stage: Stage, id: &str, item: &Item<'_>, out: &mut Emitter<'_>) {
        if self.calls.get(id).is_none() {
            let start = Event::ToolCallStart {
                tool_call_id: id.into(),
                tool_call_name: name(item),
                parent_message_id: None,
                metadata: None,
            };
            out.emit(&start);
            self.calls.begin(id.to_owned(), None);
        }
        let open = self.calls.get(id).is_some_and(|call| !call.ended);
        // What is searched for, or changed, may be known only at the end.
        let known = matches!(item.kind.0.as_ref(), "command_execution" | "mcp_tool_call");
        if open && (known || stage == Stage::Completed) {
            out.emit(&Event::ToolCallArgs { tool_call_id: id.into(), delta: arguments(item).into() });
            out.emit(&Event::ToolCallEnd { tool_call_id: id.into() });
            self.calls.end(id);
        }
        if stage == Stage::Completed {
            let (content, failed) = result(item);
            let result = Event::ToolCallResult {
                message_id: out.next_id().into(),
                tool_call_id: id.into(),
                content: content.into(),
                role: "tool",
                metadata: failed.then(output_error),
            };
            out.emit(&result);
            self.calls.resolve(id);
        }
    }
}

fn name<'a>(item: &'a Item<'_>) -> Cow<'a, str> {
    match (text(&item.server), text(&item.tool)) {
        (Some(server), Some(tool)) => Cow::Owned(format!("mcp__{server}__{tool}")),
        _ => Cow::Borrowed(&item.kind.0),
    }
}

fn arguments(item: &Item<'_>) -> String {
    match item.kind.0.as_ref() {
        "command_execution" => {
            let arguments = CommandArguments { command: text(&item.command).unwrap_or_default() };
            serde_json::to_string(&arguments).expect("plain data with text keys is JSON")
        }
        "mcp_tool_call" => item.arguments.map_or("{}", RawValue::get).to_owned(),
        "file_change" => object(&[("changes", item.changes)]),
        _ => object(&[("query", item.query), ("action", item.action)]),
    }
}

/// What the tool said, and whether that is a failure.
fn result(item: &Item<'_>) -> (String, bool) {
    let status = text(&item.status).unwrap_or("completed");
    let failed = matches!(status, "failed" | "declined");
    match item.kind.0.as_ref() {
        "command_execution" => {
            let result = CommandResult {
                aggregated_output: text(&item.aggregated_output).unwrap_or_default(),
                exit_code: item.exit_code,
                status,
            };
            let content = serde_json::to_string(&result).expect("plain data with text keys is JSON");
            (content, failed || item.exit_code.is_some_and(|code| code != 0))
        }
        "mcp_tool_call" => match item.error.filter(|error| error.get() != "null") {
            Some(error) => (object(&[("error", Some(error))]), true),
            None => (item.result.map_or("null", RawValue::get).to_owned(), failed),
        },
        _ => (json!({"status": status}).to_string(), failed),
    }
}

/// An object of those values that exist.
fn object(fields: &[(&str, Option<&RawValue>)]) -> String {
    let fields = fields.iter().filter_map(|(name, value)| Some(format!("\"{name}\":{}", (*value)?.get())));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

fn reasoning(id: &str, thought: &str, out: &mut Emitter<'_>) {
    if thought.is_empty() {
        return;
    }
    let message_id = || id.into();
    out.emit(&Event::ReasoningStart { message_id: message_id() });
    out.emit(&Event::ReasoningMessageStart { message_id: message_id(), role: "reasoning" });
    out.emit(&Event::ReasoningMessageContent { message_id: message_id(), delta: thought.into() });
    out.emit(&Event::ReasoningMessageEnd { message_id: message_id() });
    out.emit(&Event::ReasoningEnd { message_id: message_id() });
}

fn todo_list(id: &str, items: &RawValue, out: &mut Emitter<'_>) {
    let list = TodoList {
        kind: EventKind::ActivitySnapshot.as_str(),
        message_id: id,
        activity_type: "todo_list",
        content: Todos { items },
        replace: true,
    };
    let json = serde_json::to_string(&list).expect("plain data with text keys is JSON");
    out.emit_chunk(Chunk { kind: EventKind::ActivitySnapshot, json });
}
