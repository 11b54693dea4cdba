//! What Codex prints, as events.

use outlast_core::event::Event;
use outlast_core::run::Usage;
use serde_json::{Value, json};

use super::item::Stage;
use super::line::{Line, SessionUsage};
use super::state::{State, Turn};
use crate::common::json::{text, with_line};
use crate::common::{calls, exit, notices};
use crate::{AgentExit, Emitter, Ended, PrintedLine, RunContext, Translator};

const SOURCE: &str = "codex";

/// Translates Codex's output.
pub(super) struct CodexTranslator {
    model: Option<String>,
    state: State,
}

impl CodexTranslator {
    pub(super) fn new(context: &RunContext, state: State) -> Self {
        CodexTranslator { model: context.model.clone(), state }
    }

    /// Takes a line; false if it is of no known kind.
    fn take(&mut self, line: Line<'_>, out: &mut Emitter<'_>) -> bool {
        let stage = match line.kind.as_ref() {
            "item.started" => Stage::Started,
            "item.updated" => Stage::Updated,
            "item.completed" => Stage::Completed,
            other => return self.take_turn(other, &line, out),
        };
        line.item.and_then(|item| item.0).is_some_and(|item| self.state.item(stage, &item, out))
    }

    fn take_turn(&mut self, kind: &str, line: &Line<'_>, out: &mut Emitter<'_>) -> bool {
        let state = &mut self.state;
        match kind {
            "thread.started" => {
                let Some(session) = text(&line.thread_id) else {
                    return false;
                };
                if state.items {
                    state.close(out);
                    state.generation += 1;
                    state.items = false;
                }
                state.session = Some(session.to_owned());
                let value = match &self.model {
                    Some(model) => json!({"sessionId": session, "model": model}),
                    None => json!({"sessionId": session}),
                };
                out.emit(&Event::Custom { name: "codex.session-id".into(), value });
            }
            "turn.started" => state.turn = Some(Turn::Running),
            "turn.completed" => {
                state.turn = Some(Turn::Completed);
                // What went wrong on the way was overcome.
                state.error = None;
                let used = line.usage.as_ref().and_then(|usage| usage.0.as_ref());
                state.usage = used.map(|used| usage(self.model.clone(), used)).into_iter().collect();
            }
            "turn.failed" => {
                state.turn = Some(Turn::Failed);
                let failure = line.error.as_ref().and_then(|error| error.0.as_ref());
                if let Some(message) = failure.and_then(|failure| text(&failure.message)) {
                    state.error = Some(exit::reported(None, message));
                }
            }
            "error" => {
                let Some(message) = text(&line.message) else {
                    return false;
                };
                state.error = Some(exit::reported(None, message));
                let value = json!({"message": message});
                out.emit(&Event::Custom { name: "codex.error".into(), value });
            }
            _ => return false,
        }
        true
    }
}

impl Translator for CodexTranslator {
    fn line(&mut self, line: PrintedLine<'_>, out: &mut Emitter<'_>) {
        match line {
            PrintedLine::Bytes { bytes, .. } => {
                let line = String::from_utf8_lossy(bytes);
                if line.trim_ascii().is_empty() {
                    return;
                }
                let told = with_line(&line, |line| {
                    let parsed = serde_json::from_str(line).ok()?;
                    Some(self.take(parsed, out))
                });
                if told != Some(true) {
                    notices::raw(&line, SOURCE, out);
                }
                if matches!(line, std::borrow::Cow::Owned(_)) {
                    notices::undecodable(bytes, out);
                }
            }
            PrintedLine::Oversized { bytes, sha256 } => notices::oversized(bytes, sha256, out),
            PrintedLine::Restarted => {
                self.state.close(out);
                let generation = self.state.generation + u32::from(self.state.items);
                self.state = State { generation, ..State::default() };
                notices::restarted(out);
            }
        }
    }

    fn finish(&mut self, exit: &AgentExit, out: &mut Emitter<'_>) -> Ended {
        self.state.close(out);
        let State { turn, error, usage, .. } = std::mem::take(&mut self.state);
        let failure = match turn {
            Some(Turn::Completed) => exit::failure(exit),
            Some(Turn::Failed) => Some(error.unwrap_or_else(|| exit::reported(None, "the turn failed"))),
            // An error may have been overcome when somebody ended the agent.
            Some(Turn::Running) | None => match error {
                Some(error) if exit.signal.is_none() => Some(error),
                _ => exit::unfinished(exit, "without completing its turn"),
            },
        };
        Ended { failure, usage, result: None }
    }

    fn state(&self) -> Value {
        serde_json::to_value(&self.state).expect("plain data with text keys is JSON")
    }

    fn session(&self) -> Option<&str> {
        self.state.session.as_deref()
    }
}

impl State {
    /// Closes everything that is open.
    fn close(&mut self, out: &mut Emitter<'_>) {
        self.end_growing(out);
        for call in self.calls.take() {
            if let Some(end) = calls::missing_end(&call) {
                out.emit(&end);
            }
            let message_id = out.next_id();
            out.emit(&calls::interrupted(&call, message_id));
        }
    }
}

fn usage(model: Option<String>, used: &SessionUsage) -> Usage {
    Usage {
        model,
        input_tokens: used.input_tokens,
        output_tokens: used.output_tokens,
        total_tokens: used.input_tokens.saturating_add(used.output_tokens),
        cached_input_tokens: used.cached_input_tokens,
        reasoning_tokens: used.reasoning_output_tokens,
    }
}
