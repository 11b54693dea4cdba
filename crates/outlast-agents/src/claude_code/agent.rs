//! The kind `claude-code`.

use serde_json::Value;

use super::launch;
use super::state::State;
use super::translator::ClaudeTranslator;
use crate::{Agent, LaunchPlan, LaunchRequest, PlanError, RunContext, StateUnreadable, Translator};

/// The kind `claude-code`: Anthropic's Claude Code (flags and output as of version 2.1).
///
/// **Launch.** The prompt is its standard input. Each run is a session of its own, whose id follows from the deployment's
/// id and the run's: Claude Code refuses a session id that exists, which is a second guard against starting a run twice. A
/// further turn of a thread resumes the session of the turn before and forks it into its own (`--resume S --fork-session
/// --session-id U`); where that session is lost, a fresh one is started with the conversation so far in its prompt. Unless
/// the definition's arguments say how permissions are given, they are not asked for.
///
/// **Translation.** Text and thinking stream as they come; a message that was not streamed is told in one piece. A tool call
/// is told once its arguments are complete. `CUSTOM claude-code.session-id` has `{sessionId, model, tools}`,
/// `claude-code.api-retry` and `claude-code.permission-denied` hold Claude Code's own line. What a sub-agent says and does
/// comes as `CUSTOM claude-code.subagent` with `{parentToolCallId, event}`, where `event` is an AG-UI event of the same
/// forms as the agent's own: a reader that knows nothing of sub-agents shows nothing, one that does feeds them to what
/// renders a conversation, under that tool call. Everything unknown is `RAW` with source `claude-code`; the signs of life
/// `status` and `thinking_tokens` are left out.
///
/// **Outcome.** The last `result` line decides, also where it calls a failure `success` with `is_error: true`. A failure's
/// code is its subtype (`error_max_turns`), else its terminal reason (`api_error`). Without a `result` line a run has
/// failed, even with exit status 0.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClaudeCode;

impl Agent for ClaudeCode {
    fn kind(&self) -> &'static str {
        "claude-code"
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

    fn translator(&self, _context: &RunContext) -> Box<dyn Translator> {
        Box::new(ClaudeTranslator::new(State::default()))
    }

    fn resume(&self, _context: &RunContext, state: &Value) -> Result<Box<dyn Translator>, StateUnreadable> {
        Ok(Box::new(ClaudeTranslator::new(State::read(state)?)))
    }
}
