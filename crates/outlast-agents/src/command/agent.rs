//! How a command is launched.

use serde_json::Value;

use super::state::State;
use super::translator::CommandTranslator;
use crate::{Agent, LaunchPlan, LaunchRequest, PlanError, RunContext, StateUnreadable, Translator};

/// The kind `command`: any program.
///
/// Each line that it prints, line break included, is text of the assistant; a line that is an AG-UI event in JSON is that
/// event, with the bytes as printed and with the ids as printed: keeping ids unique across runs is the command's own
/// affair (its run's id is a good prefix). What is Outlast's to write is not taken from it: `RUN_STARTED` and
/// `RUN_FINISHED` are swallowed (usage and result are kept), a `RUN_ERROR` makes the run fail, with the last one's
/// message and code, once the command ends. An event that would break the sequence for readers (content of a message
/// that is not open, a second start) becomes a `RAW` event that holds it. At the end, what the command left open is
/// closed.
///
/// A line that is no UTF-8 is told as text with U+FFFD and, directly after, whole as `CUSTOM outlast.undecodable-line`
/// with `{base64}`; one that is too long to keep as `CUSTOM outlast.oversized-line` with `{bytes, sha256}`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Command;

impl Agent for Command {
    fn kind(&self) -> &'static str {
        "command"
    }

    fn state_version(&self) -> u32 {
        1
    }

    fn usual_env(&self) -> &'static [&'static str] {
        &[]
    }

    fn plan(&self, request: &LaunchRequest<'_>) -> Result<LaunchPlan, PlanError> {
        let spec = request.spec;
        if spec.argv.first().is_none_or(String::is_empty) {
            return Err(PlanError(format!(
                "agent {:?} is a command, but no command is given: put it after `--`, or set argv = [\"program\", …] \
                 in [agents.{}]",
                spec.agent, spec.agent
            )));
        }
        Ok(LaunchPlan { argv: spec.argv.clone(), prompt: spec.prompt.clone(), ..LaunchPlan::default() })
    }

    fn translator(&self, _context: &RunContext) -> Box<dyn Translator> {
        Box::new(CommandTranslator::new(State::default()))
    }

    fn resume(&self, _context: &RunContext, state: &Value) -> Result<Box<dyn Translator>, StateUnreadable> {
        let state = State::read(state)?;
        Ok(Box::new(CommandTranslator::new(state)))
    }
}
