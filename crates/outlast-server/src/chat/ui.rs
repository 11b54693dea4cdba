//! The transcript as a chat client renders it.
//!
//! Clients of AG-UI build messages with parts out of events. What they are given when they open a thread must be what
//! they would have built had they watched from the start, so this follows the rules by which they build: each text begins
//! a message, reasoning and tool calls join the latest one (those before the first text, the message that it begins),
//! all reasoning of a message is one part, and results stand beside their calls.

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
        step_id: String,
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
    let mut build = Build::default();
    for run in rows.chunk_by(|a, b| a.run_id == b.run_id) {
        build.begin_run();
        if run.first().is_some_and(|row| Some(row.run_id.as_str()) == live) {
            build.live(run);
        } else {
            run.iter().for_each(|row| build.add(&row.message));
        }
    }
    if let Some(run_id) = live
        && rows.last().is_some_and(|row| row.run_id.as_str() != run_id)
        && build.out.last().is_some_and(|message| message.role == "assistant")
    {
        // The live run has no message yet, not even the user's: what is dropped must not be what an earlier run said.
        build.out.push(UiMessage { id: run_id.to_owned(), role: "assistant", parts: Vec::new() });
    }
    build.out
}

/// The messages on their way.
#[derive(Default)]
struct Build {
    out: Vec<UiMessage>,
    /// Where the messages of the run begin.
    run: usize,
    /// The assistant's message that is being built.
    current: Option<usize>,
    /// Whether the run has said a text. What comes before the first one joins it.
    spoken: bool,
}

impl Build {
    fn begin_run(&mut self) {
        *self = Build { run: self.out.len(), out: std::mem::take(&mut self.out), ..Build::default() };
    }

    /// Adds the run that clients follow.
    ///
    /// They drop the last message when the replay comes to a text or a call. Reasoning that comes before that begins a
    /// message, and then it is this one that they drop, while what was given here stays and takes what follows, if it
    /// has the id of the first text. So then it is what comes before that text, and nothing else.
    fn live(&mut self, run: &[MessageRow]) {
        let first = run.iter().find(|row| says_something(&row.message));
        let thinks = first.is_some_and(|row| row.message.role == Role::Reasoning);
        let text = run.iter().position(|row| is_text(&row.message)).filter(|_| thinks);
        let (shown, rest) = run.split_at(text.unwrap_or(run.len()));
        shown.iter().for_each(|row| self.add(&row.message));
        let (said, others): (Vec<_>, Vec<_>) =
            self.out.drain(self.run..).partition(|message| message.role == "assistant");
        self.out.extend(others);
        let one = said.into_iter().reduce(|mut all, message| {
            all.parts.extend(message.parts);
            all
        });
        if let Some(mut one) = one {
            if let Some(text) = rest.first() {
                one.id.clone_from(&text.message.id);
            }
            self.out.push(one);
        }
    }

    fn add(&mut self, message: &Message) {
        let words = message.content.clone().unwrap_or_default();
        match message.role {
            Role::User => self.push(message, "user", vec![Part::Text { content: words }]),
            Role::System | Role::Developer => {
                self.push(message, "system", vec![Part::Text { content: words }]);
            }
            Role::Reasoning => self.reasoning(message, words),
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
                *self.current.insert(self.out.len() - 1)
            }
        };
        &mut self.out[n]
    }

    /// The run's message of this id.
    fn named(&self, id: &str) -> Option<usize> {
        let is_it = |message: &UiMessage| message.role == "assistant" && message.id == id;
        self.out[self.run..].iter().position(is_it).map(|n| self.run + n)
    }

    fn reasoning(&mut self, message: &Message, words: String) {
        if words.is_empty() {
            return;
        }
        let parts = &mut self.building(&message.id).parts;
        let before = parts.iter_mut().find_map(|part| match part {
            Part::Thinking { content, .. } => Some(content),
            _ => None,
        });
        match before {
            Some(content) => content.push_str(&words),
            None => parts.push(Part::Thinking { content: words, step_id: message.id.clone() }),
        }
    }

    fn assistant(&mut self, message: &Message, words: String) {
        let named = self.named(&message.id);
        if is_text(message) {
            if named.is_none() {
                if self.spoken {
                    self.current = None;
                }
                self.building(&message.id).id.clone_from(&message.id);
            }
            self.spoken = true;
        }
        let text = (!words.is_empty()).then_some(Part::Text { content: words });
        let calls = message.tool_calls.iter().map(|call| Part::ToolCall {
            id: call.id.clone(),
            name: call.function.name.clone(),
            arguments: call.function.arguments.clone(),
            state: "input-complete",
            input: serde_json::from_str(&call.function.arguments).ok(),
            output: None,
        });
        let joined = match named {
            Some(n) => &mut self.out[n],
            None => self.building(&message.id),
        };
        joined.parts.extend(text.into_iter().chain(calls));
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
            let error = failed.then(|| error_of(&value)).filter(|error| !error.is_empty());
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

/// Whether the message began as a text, and not with a call.
fn is_text(message: &Message) -> bool {
    message.role == Role::Assistant && message.content.is_some()
}

/// Whether a client begins a message of the assistant for it.
fn says_something(message: &Message) -> bool {
    match message.role {
        Role::Assistant => true,
        Role::Reasoning => message.content.as_ref().is_some_and(|words| !words.is_empty()),
        Role::Tool | Role::User | Role::System | Role::Developer => false,
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
        MessageRow { run_id: RunId::new(run).expect("id"), ordinal: 0, message, pointer: None }
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
                {"type": "thinking", "content": "hmso", "stepId": "q1"},
                {"type": "text", "content": "I look."},
                call("c1", "complete", "out"),
                {"type": "tool-result", "toolCallId": "c1", "content": "out", "state": "complete"},
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

    /// The messages and their parts, in short.
    fn told(messages: &[UiMessage]) -> Vec<String> {
        let part = |part: &Part| match part {
            Part::Text { content } | Part::Thinking { content, .. } => content.clone(),
            Part::ToolCall { id, .. } => format!("call {id}"),
            Part::ToolResult { tool_call_id, .. } => format!("result {tool_call_id}"),
        };
        let parts = |message: &UiMessage| message.parts.iter().map(part).collect::<Vec<_>>().join(", ");
        messages.iter().map(|message| format!("{}: {}", message.id, parts(message))).collect()
    }

    #[test]
    fn what_comes_before_the_first_text_joins_it() {
        let mut rows = vec![
            say("r", "q1", Role::Reasoning, "hm"),
            say("r", "q2", Role::Reasoning, ""),
            calling("r", "c1", None, "c1"),
            result("r", "c1", "out", None),
        ];
        assert_eq!(told(&ui_messages(&rows, None)), ["q1: hm, call c1, result c1"]);
        rows.push(say("r", "a1", Role::Assistant, "One."));
        rows.push(say("r", "a2", Role::Assistant, "Two."));
        rows.push(calling("r", "a1", None, "c2"));
        rows.push(calling("r", "c3", None, "c3"));
        let expected = ["a1: hm, call c1, result c1, One., call c2", "a2: Two., call c3"];
        assert_eq!(told(&ui_messages(&rows, None)), expected);
    }

    #[test]
    fn a_live_run_is_the_last_message_and_one() {
        let mut rows = vec![say("r0", "u0", Role::User, "before"), say("r0", "a0", Role::Assistant, "yes")];
        rows.extend(a_run().into_iter().filter(|row| row.message.id != "q1"));
        let shown = ui_messages(&rows, Some("r"));
        let ids: Vec<&str> = shown.iter().map(|message| message.id.as_str()).collect();
        assert_eq!(ids, ["u0", "a0", "u", "a1"]);
        assert_eq!(shown[3].parts.len(), 7);
    }

    #[test]
    fn a_live_run_that_began_with_thoughts_is_what_comes_before_its_first_text() {
        let rows = a_run();
        assert_eq!(told(&ui_messages(&rows, Some("r"))), ["u: go", "a1: hm"]);
        assert_eq!(told(&ui_messages(&rows[..2], Some("r"))), ["u: go", "q1: hm"]);
    }

    #[test]
    fn a_live_run_that_has_no_message_yet_covers_what_was_said_before() {
        let rows = [say("r0", "u0", Role::User, "before"), say("r0", "a0", Role::Assistant, "yes")];
        assert_eq!(told(&ui_messages(&rows, Some("r"))), ["u0: before", "a0: yes", "r: "]);
        assert_eq!(told(&ui_messages(&rows[..1], Some("r"))), ["u0: before"]);
        assert_eq!(told(&ui_messages(&[], Some("r"))), [""; 0]);
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
