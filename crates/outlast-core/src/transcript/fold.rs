//! From events to messages.

use std::borrow::Cow;

use serde::Deserialize;

use super::{FunctionCall, Message, Role, ToolCall};
use crate::event::{Chunk, EventKind};
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
#[serde(rename_all = "camelCase")]
struct Fields<'a> {
    #[serde(borrow, default)]
    message_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    role: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    delta: Option<Text<'a>>,
    #[serde(borrow, default)]
    tool_call_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_call_name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    parent_message_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Option<Text<'a>>,
    #[serde(default)]
    metadata: Option<serde_json::Value>,
    #[serde(borrow, default)]
    error: Option<Cow<'a, str>>,
}

/// Text where the event has text; anything else (a state's delta, say) is of no interest here.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Other(serde::de::IgnoredAny),
}

impl Text<'_> {
    fn as_str(&self) -> &str {
        match self {
            Text::Text(text) => text,
            Text::Other(_) => "",
        }
    }
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
        let delta = fields.delta.as_ref().map_or("", Text::as_str);
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
            K::ToolCallResult => {
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
    let content = fields.content.as_ref().map_or("", Text::as_str);
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
