//! What a command's translator remembers.

use outlast_core::run::{RunError, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::StateUnreadable;
use crate::common::calls::Calls;

/// Small, whatever the command prints: see [`State::MAX_OPEN`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct State {
    /// The open message that holds printed text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) own: Option<OwnMessage>,
    /// What the command itself has opened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) open: Vec<Open>,
    /// Its tool calls that are not settled.
    pub(super) calls: Calls,
    /// The failure that it has printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<RunError>,
    /// The usage that it has printed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) usage: Vec<Usage>,
    /// The result that it has printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<Value>,
}

/// A message that the translator has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OwnMessage {
    pub(super) id: String,
    /// How many printed bytes it holds.
    pub(super) bytes: u64,
}

/// Something that the command has opened and must close.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Open {
    pub(super) what: Opened,
    pub(super) id: String,
}

/// What can be open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Opened {
    Text,
    Reasoning,
    ReasoningMessage,
    Step,
}

impl State {
    /// How much a command may have open at once, and how many calls without a result are remembered. The state is
    /// stored with every append, so it has to stay small.
    pub(super) const MAX_OPEN: usize = 128;
    /// The longest id, in bytes, of something that has to be remembered.
    pub(super) const MAX_ID_BYTES: usize = 512;

    pub(super) fn read(state: &Value) -> Result<State, StateUnreadable> {
        State::deserialize(state).map_err(|error| StateUnreadable(error.to_string()))
    }

    pub(super) fn is_open(&self, what: Opened, id: &str) -> bool {
        self.open.iter().any(|open| open.what == what && open.id == id)
    }

    /// Whether a message of this id is open, whoever has begun it.
    pub(super) fn message_is_open(&self, id: &str) -> bool {
        self.own.as_ref().is_some_and(|own| own.id == id)
            || self.is_open(Opened::Text, id)
            || self.is_open(Opened::ReasoningMessage, id)
    }

    pub(super) fn has_room_for(&self, id: &str) -> bool {
        self.open.len() < Self::MAX_OPEN && id.len() <= Self::MAX_ID_BYTES
    }

    pub(super) fn opened(&mut self, what: Opened, id: &str) {
        self.open.push(Open { what, id: id.to_owned() });
    }

    pub(super) fn closed(&mut self, what: Opened, id: &str) {
        self.open.retain(|open| open.what != what || open.id != id);
    }
}
