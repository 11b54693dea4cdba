//! What Claude Code prints, as events.

use outlast_core::event::Event;
use serde_json::{Value, json};

use super::line::{Block, Init, Line, Message, Status};
use super::result::Outcome;
use super::state::State;
use super::stream::whole;
use super::subagent::emit;
use crate::common::calls::{self, output_error};
use crate::common::json::{text, with_line};
use crate::common::{exit, notices};
use crate::{AgentExit, Emitter, Ended, PrintedLine, Translator};

const SOURCE: &str = "claude-code";

/// Translates Claude Code's output.
pub(super) struct ClaudeTranslator {
    state: State,
}

impl ClaudeTranslator {
    pub(super) fn new(state: State) -> Self {
        ClaudeTranslator { state }
    }
}

impl Translator for ClaudeTranslator {
    fn line(&mut self, line: PrintedLine<'_>, out: &mut Emitter<'_>) {
        match line {
            PrintedLine::Bytes { bytes, .. } => {
                let line = String::from_utf8_lossy(bytes);
                if line.trim_ascii().is_empty() {
                    return;
                }
                let told = with_line(&line, |line| {
                    let parsed = serde_json::from_str(line).ok()?;
                    Some(self.state.take(line, parsed, out))
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
                // The first attempt's `result` line, which says that the session is lost, is not this run's outcome.
                self.state = State::default();
                notices::restarted(out);
            }
        }
    }

    fn finish(&mut self, exit: &AgentExit, out: &mut Emitter<'_>) -> Ended {
        self.state.close(out);
        match self.state.outcome.take() {
            Some(Outcome { failure, usage, answer }) => {
                Ended { failure: failure.or_else(|| exit::failure(exit)), usage, result: answer }
            }
            None => Ended {
                failure: exit::unfinished(exit, "without saying how its work went (no result line)"),
                ..Ended::default()
            },
        }
    }

    fn state(&self) -> Value {
        serde_json::to_value(&self.state).expect("plain data with text keys is JSON")
    }

    fn session(&self) -> Option<&str> {
        self.state.session.as_deref()
    }
}

impl State {
    /// Takes a line; false if it is of no known kind.
    fn take(&mut self, line: &str, parsed: Line<'_>, out: &mut Emitter<'_>) -> bool {
        let parent = text(&parsed.parent_tool_use_id);
        let message = parsed.message.and_then(|message| message.0);
        match (parsed.kind.as_ref(), message, parent) {
            // A sub-agent's message is told when it is complete.
            ("stream_event", _, Some(_)) => true,
            ("stream_event", _, None) => {
                parsed.event.and_then(|event| event.0).is_some_and(|delivery| self.deliver(delivery, out))
            }
            ("assistant", Some(message), Some(parent)) => self.subagent(parent, "assistant", message, out),
            ("user", Some(message), Some(parent)) => self.subagent(parent, "user", message, out),
            ("assistant", Some(message), None) => self.assistant(message, out),
            ("user", Some(message), None) => self.user(message, out),
            ("system", ..) => self.system(text(&parsed.subtype).unwrap_or_default(), line, out),
            ("result", ..) => match with_line(line, |line| Outcome::read(line, self.outcome.as_ref())) {
                Some(outcome) => {
                    self.outcome = Some(outcome);
                    true
                }
                None => false,
            },
            _ => false,
        }
    }

    /// Tells the agent's message; false if a part of it is not known.
    fn assistant(&mut self, message: Message<'_>, out: &mut Emitter<'_>) -> bool {
        let id = text(&message.id).unwrap_or_default();
        if self.message.as_ref().is_none_or(|current| current.id != id) {
            self.close_block(out);
            self.begin_message(id, false);
        }
        let blocks = message.content.into_blocks();
        let mut known = !blocks.is_empty();
        for block in blocks {
            let (thinking, content) = match block.kind.as_ref() {
                "text" => (false, text(&block.text).unwrap_or_default()),
                "thinking" => (true, text(&block.thinking).unwrap_or_default()),
                "redacted_thinking" => (true, ""),
                _ => {
                    // Nothing of a message's text is open beside its tool calls: readers may render them in order.
                    self.close_block(out);
                    let parent = self.message.as_ref().and_then(|current| current.text.clone());
                    known &= self.call_or_result(&block, None, parent, out);
                    continue;
                }
            };
            let current = self.message.get_or_insert_default();
            if current.streamed {
                self.complete_streamed(thinking, content, out);
            } else if !content.is_empty() {
                whole(current, thinking, content, out);
            }
        }
        known
    }

    /// Tells the results of tools; false if the message holds something else.
    fn user(&mut self, message: Message<'_>, out: &mut Emitter<'_>) -> bool {
        let blocks = message.content.into_blocks();
        let mut known = !blocks.is_empty();
        for block in blocks {
            known &= self.call_or_result(&block, None, None, out);
        }
        known
    }

    /// Tells a tool call, or the result of one; false if the block is neither. A call that is known is not told again.
    pub(super) fn call_or_result(
        &mut self,
        block: &Block<'_>,
        within: Option<String>,
        parent_message_id: Option<String>,
        out: &mut Emitter<'_>,
    ) -> bool {
        let within_id = within.as_deref();
        if let Some(call) = text(&block.tool_use_id) {
            let id = out.own_id(call);
            let message_id = out.next_id();
            let result = Event::ToolCallResult {
                message_id: message_id.into(),
                tool_call_id: id.as_str().into(),
                content: block.content.as_text(),
                role: "tool",
                metadata: (block.is_error == Some(true)).then(output_error),
            };
            emit(within_id, &result, out);
            self.calls.resolve(&id);
            return true;
        }
        let (Some(call), Some(name)) = (text(&block.id), text(&block.name)) else {
            return false;
        };
        let id = out.own_id(call);
        if self.calls.get(&id).is_some() {
            return true;
        }
        let tool_call_id = || id.as_str().into();
        let start = Event::ToolCallStart {
            tool_call_id: tool_call_id(),
            tool_call_name: name.into(),
            parent_message_id: parent_message_id.map(Into::into),
            metadata: None,
        };
        let delta = block.input.map_or("{}", |input| input.get()).into();
        emit(within_id, &start, out);
        emit(within_id, &Event::ToolCallArgs { tool_call_id: tool_call_id(), delta }, out);
        emit(within_id, &Event::ToolCallEnd { tool_call_id: tool_call_id() }, out);
        self.calls.begin(id.clone(), within);
        self.calls.end(&id);
        true
    }

    fn system(&mut self, subtype: &str, line: &str, out: &mut Emitter<'_>) -> bool {
        let name = match subtype {
            "init" => {
                let Ok(init) = serde_json::from_str::<Init>(line) else {
                    return false;
                };
                let value = json!({"sessionId": init.session_id, "model": init.model, "tools": init.tools});
                self.session = Some(init.session_id);
                out.emit(&Event::Custom { name: "claude-code.session-id".into(), value });
                return true;
            }
            // Signs of life, several a second.
            "thinking_tokens" => return true,
            "status" => {
                let status = serde_json::from_str::<Status<'_>>(line).ok();
                return status.is_some_and(|status| text(&status.status) == Some("requesting"));
            }
            "api_retry" => "claude-code.api-retry",
            "permission_denied" => "claude-code.permission-denied",
            _ => return false,
        };
        let Ok(Value::Object(mut value)) = serde_json::from_str(line) else {
            return false;
        };
        for known in ["type", "subtype", "session_id", "uuid"] {
            value.remove(known);
        }
        out.emit(&Event::Custom { name: name.into(), value: value.into() });
        true
    }

    /// Closes everything that is open.
    fn close(&mut self, out: &mut Emitter<'_>) {
        self.close_block(out);
        for call in self.calls.take() {
            let message_id = out.next_id();
            emit(call.within.as_deref(), &calls::interrupted(&call, message_id), out);
        }
    }
}
