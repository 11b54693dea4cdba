//! What Codex's translator remembers.

use outlast_core::run::{RunError, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::StateUnreadable;
use crate::common::calls::Calls;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct State {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session: Option<String>,
    /// How often the numbers of items have begun anew.
    pub(super) generation: u32,
    /// Whether this generation has had an item.
    pub(super) items: bool,
    /// The message that is still growing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) growing: Option<Growing>,
    pub(super) calls: Calls,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) turn: Option<Turn>,
    /// The last error that Codex told since the last turn that it completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<RunError>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) usage: Vec<Usage>,
}

/// A message of which only the beginning was told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Growing {
    pub(super) id: String,
    pub(super) told: u64,
}

/// How the last turn went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Turn {
    Running,
    Completed,
    Failed,
}

impl State {
    pub(super) fn read(state: &Value) -> Result<State, StateUnreadable> {
        State::deserialize(state).map_err(|error| StateUnreadable(error.to_string()))
    }
}
