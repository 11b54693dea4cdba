//! The kind `codex`.

use serde_json::Value;

use super::launch;
use super::state::State;
use super::translator::CodexTranslator;
use crate::{Agent, LaunchPlan, LaunchRequest, PlanError, RunContext, StateUnreadable, Translator};

/// The kind `codex`: OpenAI's Codex (flags and output as of version 0.171).
///
/// **Launch.** `codex exec --json`, with the prompt as its standard input. A further turn of a thread resumes the session of
/// the turn before; where that session is lost, a fresh one is started with the conversation so far in its prompt. Unless
/// the definition's arguments say how commands are confined and approved, they are neither: the sandbox is Outlast's
/// affair, and nobody is there to approve.
///
/// **Translation.** A tool call has the name of its item's type: `command_execution` with `{command}` and the result
/// `{aggregated_output, exit_code, status}`, `file_change` with `{changes}`, `web_search` with `{query}`; a call of an MCP
/// server's tool is `mcp__<server>__<tool>`. A to-do list is an `ACTIVITY_SNAPSHOT` of type `todo_list` that replaces the
/// one before. `CUSTOM codex.session-id` has `{sessionId, model}`, `codex.warning` and `codex.error` have `{message}`; an
/// error is not yet a failure, since Codex tries again. Everything unknown is `RAW` with source `codex`.
///
/// **Outcome.** `turn.completed` and `turn.failed` decide. Without either a run has failed, even with exit status 0. The usage
/// that Codex tells is that of the whole session: of a resumed one it holds the turns before.
#[derive(Debug, Clone, Copy, Default)]
pub struct Codex;

impl Agent for Codex {
    fn kind(&self) -> &'static str {
        "codex"
    }

    fn state_version(&self) -> u32 {
        1
    }

    fn usual_env(&self) -> &'static [&'static str] {
        launch::USUAL_ENV
    }

    fn plan(&self, request: &LaunchRequest<'_>) -> Result<LaunchPlan, PlanError> {
        launch::plan(request)
    }

    fn translator(&self, context: &RunContext) -> Box<dyn Translator> {
        Box::new(CodexTranslator::new(context, State::default()))
    }

    fn resume(&self, context: &RunContext, state: &Value) -> Result<Box<dyn Translator>, StateUnreadable> {
        Ok(Box::new(CodexTranslator::new(context, State::read(state)?)))
    }
}
