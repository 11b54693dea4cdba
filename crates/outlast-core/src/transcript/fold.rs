//! From events to messages.

use serde::Deserialize;

use super::{FunctionCall, Message, Role, ToolCall};
use crate::event::{Chunk, EventKind, LooseText};
use crate::{Seq, canonical};

/// A message that an event completed or changed. A later update of the same ordinal replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// The message's place: the number of the event that began it.
    pub ordinal: Seq,
    /// The message.
    pub message: Message,
}

/// A message that may still change.
#[derive(Debug, Clone)]
struct Open {
    ordinal: Seq,
    message: Message,
    /// Tool calls whose arguments are still coming, by their index in `message.tool_calls`.
    pending_calls: Vec<usize>,
    /// Whether more text may come.
    streaming: bool,
}

/// Folds a run's events, in order, into messages. Holds only what is still open: memory is bounded by that.
#[derive(Debug, Clone, Default)]
pub struct Fold {
    open: Vec<Open>,
}

/// The fields that matter here, of any event.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Fields<'a> {
    #[serde(default)]
    message_id: Option<LooseText<'a>>,
    #[serde(default)]
    role: Option<LooseText<'a>>,
    #[serde(default)]
    delta: LooseText<'a>,
    #[serde(default)]
    tool_call_id: Option<LooseText<'a>>,
    #[serde(default)]
    tool_call_name: Option<LooseText<'a>>,
    #[serde(default)]
    parent_message_id: Option<LooseText<'a>>,
    #[serde(default)]
    content: LooseText<'a>,
    #[serde(default)]
    metadata: Option<serde_json::Value>,
    #[serde(default)]
    error: Option<LooseText<'a>>,
}

impl Fold {
    /// The event from which a new fold would have the same state, given the next event's number.
    pub fn fold_from(&self, next: Seq) -> Seq {
        self.open.iter().map(|open| open.ordinal).min().unwrap_or(next)
    }

    /// Takes the next event and tells which messages it completed or changed.
    pub fn apply(&mut self, seq: Seq, chunk: &Chunk, out: &mut Vec<Update>) {
        use EventKind as K;
        let relevant = matches!(
            chunk.kind,
            K::TextMessageStart
                | K::TextMessageContent
                | K::TextMessageEnd
                | K::TextMessageChunk
                | K::ToolCallStart
                | K::ToolCallArgs
                | K::ToolCallEnd
                | K::ToolCallChunk
                | K::ToolCallResult
                | K::ReasoningMessageStart
                | K::ReasoningMessageContent
                | K::ReasoningMessageEnd
                | K::ReasoningMessageChunk
        );
        if !relevant {
            return;
        }
        let Ok(fields) = serde_json::from_str::<Fields<'_>>(&chunk.json) else {
            return;
        };
        let delta = &*fields.delta;
        match chunk.kind {
            K::TextMessageStart => {
                let role = match fields.role.as_deref() {
                    Some("user") => Role::User,
                    Some("system") => Role::System,
                    Some("developer") => Role::Developer,
                    _ => Role::Assistant,
                };
                self.begin(seq, &fields, role);
            }
            K::ReasoningMessageStart => self.begin(seq, &fields, Role::Reasoning),
            K::TextMessageContent | K::ReasoningMessageContent => {
                if let Some(open) = self.streaming(fields.message_id.as_deref()) {
                    open.message.content.get_or_insert_default().push_str(delta);
                }
            }
            K::TextMessageEnd | K::ReasoningMessageEnd => {
                if let Some(open) = self.streaming(fields.message_id.as_deref()) {
                    open.streaming = false;
                    out.push(open.update());
                }
            }
            // A chunk is a start, content and end in one; agents that print them begin a message with the first.
            K::TextMessageChunk | K::ReasoningMessageChunk => {
                let role = if chunk.kind == K::TextMessageChunk { Role::Assistant } else { Role::Reasoning };
                let known = self.open.iter().any(|open| {
                    fields.message_id.as_deref().is_none_or(|id| open.message.id == id)
                        && open.message.role == role
                });
                if !known {
                    self.begin(seq, &fields, role);
                }
                if let Some(open) = self.open.iter_mut().rev().find(|open| open.message.role == role) {
                    open.streaming = false;
                    open.message.content.get_or_insert_default().push_str(delta);
                    out.push(open.update());
                }
            }
            K::ToolCallStart => self.begin_call(seq, &fields),
            K::ToolCallArgs => {
                if let Some((open, index)) = self.call(fields.tool_call_id.as_deref()) {
                    open.message.tool_calls[index].function.arguments.push_str(delta);
                }
            }
            K::ToolCallEnd => {
                if let Some((open, index)) = self.call(fields.tool_call_id.as_deref()) {
                    open.pending_calls.retain(|pending| *pending != index);
                    out.push(open.update());
                }
            }
            // As above: the first chunk begins the call, each adds to its arguments.
            K::ToolCallChunk => {
                if self.call(fields.tool_call_id.as_deref()).is_none() {
                    self.begin_call(seq, &fields);
                }
                if let Some((open, index)) = self.call(fields.tool_call_id.as_deref()) {
                    open.message.tool_calls[index].function.arguments.push_str(delta);
                    out.push(open.update());
                }
            }
            K::ToolCallResult => {
                self.finish_call(fields.tool_call_id.as_deref());
                self.settle();
                out.push(Update { ordinal: seq, message: tool_result(&fields, chunk) });
            }
            _ => {}
        }
    }

    /// The messages that are still open, for a log that has ended in the middle of one.
    pub fn finish(&mut self, out: &mut Vec<Update>) {
        for open in self.open.drain(..) {
            if open.streaming || !open.pending_calls.is_empty() {
                out.push(open.update());
            }
        }
    }

    fn begin(&mut self, seq: Seq, fields: &Fields<'_>, role: Role) {
        self.settle();
        let id = fields.message_id.as_deref().unwrap_or_default();
        self.open.push(Open {
            ordinal: seq,
            message: Message::text(id, role, ""),
            pending_calls: Vec::new(),
            streaming: true,
        });
    }

    /// A call joins the message that it names as its parent while that is the last one of the assistant; otherwise it
    /// is a message of its own, with the parent's id or its own.
    fn begin_call(&mut self, seq: Seq, fields: &Fields<'_>) {
        let Some(id) = fields.tool_call_id.as_deref() else {
            return;
        };
        let call = ToolCall {
            id: id.to_owned(),
            kind: "function".to_owned(),
            function: FunctionCall {
                name: fields.tool_call_name.as_deref().unwrap_or_default().to_owned(),
                arguments: String::new(),
            },
        };
        let parent = fields.parent_message_id.as_deref();
        let joins = self.open.iter().rposition(|open| {
            open.message.role == Role::Assistant && parent.is_some_and(|parent| open.message.id == parent)
        });
        let at = match joins {
            Some(at) => at,
            None => {
                self.settle();
                let message =
                    Message { content: None, ..Message::text(parent.unwrap_or(id), Role::Assistant, "") };
                self.open.push(Open { ordinal: seq, message, pending_calls: Vec::new(), streaming: false });
                self.open.len() - 1
            }
        };
        let open = &mut self.open[at];
        open.message.tool_calls.push(call);
        open.pending_calls.push(open.message.tool_calls.len() - 1);
    }

    /// Forgets messages that are complete: what comes next can no longer join them.
    fn settle(&mut self) {
        self.open.retain(|open| open.streaming || !open.pending_calls.is_empty());
    }

    /// A call that has its result takes no more arguments.
    fn finish_call(&mut self, id: Option<&str>) {
        if let Some((open, index)) = self.call(id) {
            open.pending_calls.retain(|pending| *pending != index);
        }
    }

    fn streaming(&mut self, id: Option<&str>) -> Option<&mut Open> {
        self.open.iter_mut().rev().find(|open| open.streaming && id.is_some_and(|id| open.message.id == id))
    }

    fn call(&mut self, id: Option<&str>) -> Option<(&mut Open, usize)> {
        let id = id?;
        self.open.iter_mut().rev().find_map(|open| {
            let index = open.pending_calls.iter().copied().find(|i| open.message.tool_calls[*i].id == id)?;
            Some((open, index))
        })
    }
}

impl Open {
    fn update(&self) -> Update {
        Update { ordinal: self.ordinal, message: self.message.clone() }
    }
}

fn tool_result(fields: &Fields<'_>, chunk: &Chunk) -> Message {
    let failed = fields.metadata.as_ref().is_some_and(|metadata| {
        metadata.pointer("/tanstack/state").and_then(serde_json::Value::as_str) == Some("output-error")
    });
    let content = &*fields.content;
    let id = fields.message_id.as_deref().map_or_else(
        || canonical::fingerprint(&serde_json::Value::String(chunk.json.clone())),
        ToOwned::to_owned,
    );
    Message {
        tool_call_id: fields.tool_call_id.as_deref().map(ToOwned::to_owned),
        error: fields.error.as_deref().map(ToOwned::to_owned).or_else(|| failed.then(|| content.to_owned())),
        ..Message::text(id, Role::Tool, content)
    }
}

/// The transcript of a whole log: the oracle that the stored messages of a run are compared with.
pub fn fold_log<'a>(events: impl IntoIterator<Item = (Seq, &'a Chunk)>) -> Vec<Message> {
    let mut fold = Fold::default();
    let mut updates = Vec::new();
    for (seq, chunk) in events {
        fold.apply(seq, chunk, &mut updates);
    }
    fold.finish(&mut updates);
    let mut messages = std::collections::BTreeMap::new();
    for update in updates {
        messages.insert(update.ordinal, update.message);
    }
    messages.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn chunk(event: Value) -> Chunk {
        let kind = EventKind::parse(event["type"].as_str().expect("type")).expect("a type");
        Chunk { kind, json: event.to_string() }
    }

    fn events() -> Vec<Chunk> {
        [
            json!({"type": "REASONING_MESSAGE_START", "messageId": "r", "role": "reasoning"}),
            json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": "hm"}),
            json!({"type": "REASONING_MESSAGE_END", "messageId": "r"}),
            json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}),
            json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "a"}),
            json!({"type": "STATE_DELTA", "delta": []}),
            json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "b\n"}),
            json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}),
            json!({"type": "TOOL_CALL_START", "toolCallId": "1", "toolCallName": "x", "parentMessageId": "m"}),
            json!({"type": "TOOL_CALL_START", "toolCallId": "2", "toolCallName": "y", "parentMessageId": "m"}),
            json!({"type": "TOOL_CALL_ARGS", "toolCallId": "1", "delta": "{}"}),
            json!({"type": "TOOL_CALL_END", "toolCallId": "1"}),
            json!({"type": "TOOL_CALL_END", "toolCallId": "2"}),
            json!({"type": "TOOL_CALL_RESULT", "messageId": "t1", "toolCallId": "1", "content": "ok"}),
            json!({"type": "TOOL_CALL_RESULT", "messageId": "t2", "toolCallId": "2", "content": "no",
                   "metadata": {"tanstack": {"state": "output-error"}}}),
            json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "3", "toolCallName": "z", "delta": "{"}),
            json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "3", "delta": "}"}),
            json!({"type": "TOOL_CALL_RESULT", "messageId": "t3", "toolCallId": "3", "content": "ok"}),
            json!({"type": "TEXT_MESSAGE_START", "messageId": "n", "role": "assistant"}),
            json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "n", "delta": "cut"}),
        ]
        .map(chunk)
        .into()
    }

    fn numbered(events: &[Chunk]) -> impl Iterator<Item = (Seq, &Chunk)> {
        events.iter().enumerate().map(|(n, chunk)| (Seq(n as u64 + 1), chunk))
    }

    #[test]
    fn messages_of_a_log() {
        let messages = fold_log(numbered(&events()));
        let told: Vec<String> = messages
            .iter()
            .map(|message| {
                let calls: Vec<String> = message
                    .tool_calls
                    .iter()
                    .map(|call| format!("{}{}", call.function.name, call.function.arguments))
                    .collect();
                let content = message.content.as_deref().unwrap_or("-");
                format!(
                    "{} {} {content:?} {} {}",
                    message.role.as_str(),
                    message.id,
                    calls.join(","),
                    message.error.is_some()
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                "reasoning r \"hm\"  false",
                "assistant m \"ab\\n\" x{},y false",
                "tool t1 \"ok\"  false",
                "tool t2 \"no\"  true",
                "assistant 3 \"-\" z{} false",
                "tool t3 \"ok\"  false",
                "assistant n \"cut\"  false",
            ]
        );
    }

    #[test]
    fn a_fold_goes_on_from_where_it_says() {
        let events = events();
        let whole = fold_log(numbered(&events));
        for cut in 0..=events.len() {
            let mut messages = std::collections::BTreeMap::new();
            let mut updates = Vec::new();
            let mut first = Fold::default();
            for (seq, chunk) in numbered(&events).take(cut) {
                first.apply(seq, chunk, &mut updates);
            }
            messages.extend(updates.drain(..).map(|update| (update.ordinal, update.message)));
            let from = first.fold_from(Seq(cut as u64 + 1));
            let mut second = Fold::default();
            for (seq, chunk) in numbered(&events).skip(from.0 as usize - 1) {
                second.apply(seq, chunk, &mut updates);
            }
            second.finish(&mut updates);
            messages.extend(updates.into_iter().map(|update| (update.ordinal, update.message)));
            assert_eq!(messages.into_values().collect::<Vec<_>>(), whole, "cut at {cut}");
        }
    }
}
