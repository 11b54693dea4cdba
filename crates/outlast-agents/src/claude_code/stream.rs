//! Text and thinking as they come from the model.

use outlast_core::event::Event;

use super::line::{Delivery, Started};
use super::state::{Block, Current, State};
use crate::Emitter;
use crate::common::json::text;

impl State {
    /// Takes a piece of a message; false if it is none that is known.
    pub(super) fn deliver(&mut self, delivery: Delivery<'_>, out: &mut Emitter<'_>) -> bool {
        match text(&delivery.kind) {
            Some("content_block_delta") => {
                let Some(delta) = delivery.delta.and_then(|delta| delta.0) else {
                    return true;
                };
                if let Some(piece) = text(&delta.text) {
                    self.tell(false, piece, out);
                } else if let Some(piece) = text(&delta.thinking) {
                    self.tell(true, piece, out);
                }
            }
            Some("message_start") => {
                self.close_block(out);
                let id = delivery.message.as_ref().and_then(|message| message.0.as_ref());
                self.begin_message(id.and_then(|message| text(&message.id)).unwrap_or_default(), true);
            }
            Some("content_block_start") => {
                self.close_block(out);
                self.begin_block(delivery.content_block.and_then(|block| block.0));
            }
            Some("content_block_stop") => self.close_block(out),
            Some("message_delta" | "message_stop" | "ping") => {}
            _ => return false,
        }
        true
    }

    /// Makes the message the current one. A message that comes again under its id goes on counting its texts, so that
    /// no id is used twice.
    pub(super) fn begin_message(&mut self, id: &str, streamed: bool) -> &mut Current {
        let again = self.message.take().filter(|current| current.id == id);
        let mut current = again.unwrap_or_else(|| Current { id: id.to_owned(), ..Current::default() });
        current.streamed = streamed;
        self.message.insert(current)
    }

    fn begin_block(&mut self, block: Option<Started<'_>>) {
        let thinking = match block.as_ref().and_then(|block| text(&block.kind)) {
            Some("text") => false,
            Some("thinking") => true,
            _ => return,
        };
        self.block = Some(Block { thinking, id: None, told: 0 });
    }

    /// Tells a piece of the streaming block. Its message begins with the first piece, so that none is empty.
    fn tell(&mut self, thinking: bool, piece: &str, out: &mut Emitter<'_>) {
        if piece.is_empty() {
            return;
        }
        if self.block.as_ref().is_none_or(|block| block.thinking != thinking) {
            self.close_block(out);
        }
        let block = self.block.get_or_insert(Block { thinking, id: None, told: 0 });
        block.told += piece.len() as u64;
        let id = match &mut block.id {
            Some(id) => id,
            None => {
                let current = self.message.get_or_insert_default();
                block.id.insert(begin(current, thinking, out))
            }
        };
        out.emit(&content(thinking, id, piece));
    }

    /// What the message's own line says of a block that was streaming: tells what the stream left out, if it broke off.
    pub(super) fn complete_streamed(&mut self, thinking: bool, whole: &str, out: &mut Emitter<'_>) {
        let Some(block) = self.block.as_ref().filter(|block| block.thinking == thinking) else {
            return;
        };
        let rest = usize::try_from(block.told).ok().and_then(|told| whole.get(told..));
        self.tell(thinking, rest.unwrap_or_default(), out);
    }

    pub(super) fn close_block(&mut self, out: &mut Emitter<'_>) {
        if let Some(Block { thinking, id: Some(id), .. }) = self.block.take() {
            end(thinking, &id, out);
        }
    }
}

/// Tells a block that was not streamed.
pub(super) fn whole(current: &mut Current, thinking: bool, text: &str, out: &mut Emitter<'_>) {
    let id = begin(current, thinking, out);
    out.emit(&content(thinking, &id, text));
    end(thinking, &id, out);
}

/// Begins the message of a block. The first text of a message has the message's id, later ones their number too.
fn begin(current: &mut Current, thinking: bool, out: &mut Emitter<'_>) -> String {
    if thinking {
        let id = out.next_id();
        out.emit(&Event::ReasoningStart { message_id: id.as_str().into() });
        out.emit(&Event::ReasoningMessageStart { message_id: id.as_str().into(), role: "reasoning" });
        return id;
    }
    let id = if current.id.is_empty() {
        out.next_id()
    } else if current.texts == 0 {
        out.own_id(&current.id)
    } else {
        out.own_id(&format!("{}-{}", current.id, current.texts))
    };
    current.texts += 1;
    current.text = Some(id.clone());
    out.emit(&Event::TextMessageStart { message_id: id.as_str().into(), role: "assistant" });
    id
}

fn content<'a>(thinking: bool, id: &'a str, delta: &'a str) -> Event<'a> {
    let (message_id, delta) = (id.into(), delta.into());
    if thinking {
        Event::ReasoningMessageContent { message_id, delta }
    } else {
        Event::TextMessageContent { message_id, delta }
    }
}

fn end(thinking: bool, id: &str, out: &mut Emitter<'_>) {
    if thinking {
        out.emit(&Event::ReasoningMessageEnd { message_id: id.into() });
        out.emit(&Event::ReasoningEnd { message_id: id.into() });
    } else {
        out.emit(&Event::TextMessageEnd { message_id: id.into() });
    }
}
