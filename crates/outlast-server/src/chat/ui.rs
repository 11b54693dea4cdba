//! The transcript as a chat client renders it.
//!
//! Clients of AG-UI build messages with parts out of events. What they are given when they open a thread must be what
//! they would have built had they watched from the start, so this follows the rules by which they build: a text message
//! is a message, tool calls and reasoning join the assistant's message that is being built, and results stand beside
//! their calls.

use outlast_core::transcript::{Message, Role};
use outlast_store::MessageRow;
use serde::Serialize;
use serde_json::Value;

/// A message in parts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct UiMessage {
    pub id: String,
    pub role: &'static str,
    pub parts: Vec<Part>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(super) enum Part {
    Text {
        content: String,
    },
    Thinking {
        content: String,
    },
    ToolCall {
        id: String,
        name: String,
        arguments: String,
        state: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<Value>,
    },
    ToolResult {
        tool_call_id: String,
        content: String,
        state: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
}

/// The thread's messages. What the live run has said so far is one message, the last: a client that follows the run
/// builds it anew from the log, and drops the last message of the assistant for that.
pub(super) fn ui_messages(rows: &[MessageRow], live: Option<&str>) -> Vec<UiMessage> {
    let mut out = Vec::new();
    for run in rows.chunk_by(|a, b| a.run_id == b.run_id) {
        let is_live = run.first().is_some_and(|row| Some(row.run_id.as_str()) == live);
        let mut build = Build { out: Vec::new(), current: None, unnamed: false };
        run.iter().for_each(|row| build.add(&row.message));
        let (said, others): (Vec<_>, Vec<_>) =
            build.out.into_iter().partition(|message| is_live && message.role == "assistant");
        out.extend(others);
        out.extend(said.into_iter().reduce(|mut all, message| {
            all.parts.extend(message.parts);
            all
        }));
    }
    out
}

/// One run's messages on their way.
struct Build {
    out: Vec<UiMessage>,
    /// The assistant's message that is being built.
    current: Option<usize>,
    /// Whether it began with reasoning, so that its id is that of the text that follows.
    unnamed: bool,
}

impl Build {
    fn add(&mut self, message: &Message) {
        let words = message.content.clone().unwrap_or_default();
        match message.role {
            Role::User => self.push(message, "user", vec![Part::Text { content: words }]),
            Role::System | Role::Developer => {
                self.push(message, "system", vec![Part::Text { content: words }]);
            }
            Role::Reasoning => {
                let began = self.current.is_none();
                self.building(&message.id).parts.push(Part::Thinking { content: words });
                self.unnamed |= began;
            }
            Role::Assistant => self.assistant(message, words),
            Role::Tool => self.result(message, words),
        }
    }

    fn push(&mut self, message: &Message, role: &'static str, parts: Vec<Part>) {
        self.out.push(UiMessage { id: message.id.clone(), role, parts });
    }

    /// The message that is being built, or a new one.
    fn building(&mut self, id: &str) -> &mut UiMessage {
        let n = match self.current {
            Some(n) => n,
            None => {
                self.out.push(UiMessage { id: id.to_owned(), role: "assistant", parts: Vec::new() });
                self.out.len() - 1
            }
        };
        self.current = Some(n);
        &mut self.out[n]
    }

    fn assistant(&mut self, message: &Message, words: String) {
        let speaks = message.content.is_some();
        if speaks && !self.unnamed {
            self.current = None;
        }
        let current = self.building(&message.id);
        if speaks {
            current.id.clone_from(&message.id);
        }
        if !words.is_empty() {
            current.parts.push(Part::Text { content: words });
        }
        current.parts.extend(message.tool_calls.iter().map(|call| Part::ToolCall {
            id: call.id.clone(),
            name: call.function.name.clone(),
            arguments: call.function.arguments.clone(),
            state: "input-complete",
            input: serde_json::from_str(&call.function.arguments).ok(),
            output: None,
        }));
        self.unnamed = false;
    }

    fn result(&mut self, message: &Message, words: String) {
        let Some(answered) = &message.tool_call_id else {
            return;
        };
        let failed = message.error.is_some();
        for ui in self.out.iter_mut().rev() {
            let Some(Part::ToolCall { state, output, .. }) =
                ui.parts.iter_mut().find(|part| matches!(part, Part::ToolCall { id, .. } if id == answered))
            else {
                continue;
            };
            let value = serde_json::from_str(&words).unwrap_or_else(|_| Value::String(words.clone()));
            *state = if failed { "error" } else { "complete" };
            let error = failed.then(|| error_of(&value));
            *output = Some(value);
            ui.parts.push(Part::ToolResult {
                tool_call_id: answered.clone(),
                content: words,
                state: if failed { "error" } else { "complete" },
                error,
            });
            return;
        }
    }
}

fn error_of(output: &Value) -> String {
    match (output, output.get("error").and_then(Value::as_str)) {
        (_, Some(error)) => error.to_owned(),
        (Value::String(text), None) => text.clone(),
        _ => "Tool execution failed".to_owned(),
    }
}

/// A window of the messages for clients that page: the last `limit` before the message `before`, and the place to go on
/// from where there are more.
pub(super) fn window(
    mut messages: Vec<UiMessage>,
    limit: Option<usize>,
    before: Option<&str>,
) -> (Vec<UiMessage>, Option<String>) {
    if let Some(at) = before.and_then(|id| messages.iter().position(|message| message.id == id)) {
        messages.truncate(at);
    }
    let first = limit.map_or(0, |limit| messages.len().saturating_sub(limit.max(1)));
    let rest = messages.split_off(first);
    let more = (first > 0).then(|| rest.first().map(|message| message.id.clone())).flatten();
    (rest, more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_core::RunId;
    use outlast_core::transcript::{FunctionCall, ToolCall};
    use serde_json::json;

    fn row(run: &str, message: Message) -> MessageRow {
        MessageRow { run_id: RunId::new(run).expect("id"), ordinal: 0, message }
    }

    fn say(run: &str, id: &str, role: Role, text: &str) -> MessageRow {
        row(run, Message::text(id, role, text))
    }

    fn calling(run: &str, id: &str, text: Option<&str>, call: &str) -> MessageRow {
        let function = FunctionCall { name: "Bash".into(), arguments: r#"{"a":1}"#.into() };
        let tool_calls = vec![ToolCall { id: call.into(), kind: "function".into(), function }];
        row(
            run,
            Message {
                content: text.map(str::to_owned),
                tool_calls,
                ..Message::text(id, Role::Assistant, "")
            },
        )
    }

    fn result(run: &str, call: &str, text: &str, error: Option<&str>) -> MessageRow {
        let message = Message::text(format!("x-{call}"), Role::Tool, text);
        row(run, Message { tool_call_id: Some(call.into()), error: error.map(str::to_owned), ..message })
    }

    fn a_run() -> Vec<MessageRow> {
        vec![
            say("r", "u", Role::User, "go"),
            say("r", "q1", Role::Reasoning, "hm"),
            say("r", "a1", Role::Assistant, "I look."),
            calling("r", "a2", None, "c1"),
            result("r", "c1", "out", None),
            say("r", "q2", Role::Reasoning, "so"),
            calling("r", "a3", Some("Again."), "c2"),
            result("r", "c2", "no such file", Some("failed")),
        ]
    }

    #[test]
    fn as_a_client_builds_it() {
        let input = json!({"a": 1});
        let call = |id: &str, state: &str, output: &str| {
            json!({"type": "tool-call", "id": id, "name": "Bash", "arguments": r#"{"a":1}"#, "state": state,
                   "input": input, "output": output})
        };
        let expected = json!([
            {"id": "u", "role": "user", "parts": [{"type": "text", "content": "go"}]},
            {"id": "a1", "role": "assistant", "parts": [
                {"type": "thinking", "content": "hm"},
                {"type": "text", "content": "I look."},
                call("c1", "complete", "out"),
                {"type": "tool-result", "toolCallId": "c1", "content": "out", "state": "complete"},
                {"type": "thinking", "content": "so"},
            ]},
            {"id": "a3", "role": "assistant", "parts": [
                {"type": "text", "content": "Again."},
                call("c2", "error", "no such file"),
                {"type": "tool-result", "toolCallId": "c2", "content": "no such file", "state": "error",
                 "error": "no such file"},
            ]},
        ]);
        assert_eq!(serde_json::to_value(ui_messages(&a_run(), None)).expect("json"), expected);
    }

    #[test]
    fn a_live_run_is_the_last_message_and_one() {
        let mut rows = vec![say("r0", "u0", Role::User, "before"), say("r0", "a0", Role::Assistant, "yes")];
        rows.extend(a_run());
        let shown = ui_messages(&rows, Some("r"));
        let ids: Vec<&str> = shown.iter().map(|message| message.id.as_str()).collect();
        assert_eq!(ids, ["u0", "a0", "u", "a1"]);
        assert_eq!(shown[3].parts.len(), 8);
    }

    #[test]
    fn windows() {
        let messages = || ui_messages(&a_run(), None);
        let ids = |(messages, more): (Vec<UiMessage>, Option<String>)| {
            (messages.into_iter().map(|message| message.id).collect::<Vec<_>>().join(" "), more)
        };
        assert_eq!(ids(window(messages(), None, None)), ("u a1 a3".into(), None));
        assert_eq!(ids(window(messages(), Some(2), None)), ("a1 a3".into(), Some("a1".into())));
        assert_eq!(ids(window(messages(), Some(2), Some("a1"))), ("u".into(), None));
        assert_eq!(ids(window(messages(), Some(9), None)), ("u a1 a3".into(), None));
        assert_eq!(ids(window(Vec::new(), Some(1), None)), (String::new(), None));
    }
}
