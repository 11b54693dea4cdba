//! The lines of `codex exec --json`: only the fields that are used, borrowed from the line.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::common::json::{Object, Text};

/// Any line.
#[derive(Deserialize)]
pub(super) struct Line<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) thread_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) item: Option<Object<Item<'a>>>,
    /// Of `error`.
    #[serde(borrow, default)]
    pub(super) message: Option<Text<'a>>,
    /// Of `turn.failed`.
    #[serde(borrow, default)]
    pub(super) error: Option<Object<Failure<'a>>>,
    /// Of `turn.completed`.
    #[serde(default)]
    pub(super) usage: Option<Object<SessionUsage>>,
}

/// Why a turn failed.
#[derive(Deserialize)]
pub(super) struct Failure<'a> {
    #[serde(borrow, default)]
    pub(super) message: Option<Text<'a>>,
}

/// What the session used: input includes what was cached, output includes reasoning.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct SessionUsage {
    pub(super) input_tokens: u64,
    pub(super) cached_input_tokens: Option<u64>,
    pub(super) output_tokens: u64,
    pub(super) reasoning_output_tokens: Option<u64>,
}

/// An item of any type.
#[derive(Deserialize)]
pub(super) struct Item<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    /// Of messages and reasoning.
    #[serde(borrow, default)]
    pub(super) text: Option<Text<'a>>,
    /// Of an error.
    #[serde(borrow, default)]
    pub(super) message: Option<Text<'a>>,
    /// Of a command.
    #[serde(borrow, default)]
    pub(super) command: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) aggregated_output: Option<Text<'a>>,
    #[serde(default)]
    pub(super) exit_code: Option<i64>,
    /// Of a command, a call of an MCP server's tool, a change of files.
    #[serde(borrow, default)]
    pub(super) status: Option<Text<'a>>,
    /// Of a call of an MCP server's tool.
    #[serde(borrow, default)]
    pub(super) server: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) tool: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
    /// Of a change of files.
    #[serde(borrow, default)]
    pub(super) changes: Option<&'a RawValue>,
    /// Of a search.
    #[serde(borrow, default)]
    pub(super) query: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) action: Option<&'a RawValue>,
    /// Of a to-do list.
    #[serde(borrow, default)]
    pub(super) items: Option<&'a RawValue>,
}
