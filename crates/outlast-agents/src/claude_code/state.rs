//! What Claude Code's translator remembers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::result::Outcome;
use crate::StateUnreadable;
use crate::common::calls::Calls;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct State {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session: Option<String>,
    /// The agent's own message that came last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<Current>,
    /// The block that is streaming.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) block: Option<Block>,
    pub(super) calls: Calls,
    /// Of the last `result` line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) outcome: Option<Outcome>,
}

/// A message of the model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Current {
    /// Its id in the model's words.
    pub(super) id: String,
    /// Whether its text and thinking were streamed, so that they are not told again.
    pub(super) streamed: bool,
    /// How many texts of it were told.
    pub(super) texts: u64,
    /// The id of its last text, as told: the parent of its tool calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
}

/// A block of text or thinking that is streaming.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Block {
    pub(super) thinking: bool,
    /// Its id, as told; none until the first of it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    /// How many bytes of it were told.
    pub(super) told: u64,
}

impl State {
    pub(super) fn read(state: &Value) -> Result<State, StateUnreadable> {
        State::deserialize(state).map_err(|error| StateUnreadable(error.to_string()))
    }
}
