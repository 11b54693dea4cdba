//! What a command prints, as events.

use outlast_core::event::{Chunk, Event, EventKind, check_printed};
use outlast_core::run::Usage;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::printed::{Verdict, admit, is_visible};
use super::state::{Opened, OwnMessage, State};
use crate::common::{calls, exit, notices};
use crate::{AgentExit, Emitter, Ended, PrintedLine, Translator};

/// How much printed text one message holds, in bytes, unless a single line is longer. A message of the transcript is held
/// in memory while it is open and is stored anew when it ends: both have to stay bounded for a command that prints
/// gigabytes.
const MAX_MESSAGE_BYTES: u64 = 256 * 1024;

const SOURCE: &str = "command";

/// Translates a command's output.
pub(super) struct CommandTranslator {
    state: State,
}

impl CommandTranslator {
    pub(super) fn new(state: State) -> Self {
        CommandTranslator { state }
    }

    fn text(&mut self, bytes: &[u8], terminated: bool, out: &mut Emitter<'_>) {
        let size = bytes.len() as u64 + u64::from(terminated);
        if size == 0 {
            return;
        }
        if self.state.own.as_ref().is_some_and(|own| own.bytes + size > MAX_MESSAGE_BYTES) {
            self.end_own(out);
        }
        let own = match &mut self.state.own {
            Some(own) => own,
            None => {
                let id = self.state.unused_id(out);
                out.emit(&Event::TextMessageStart { message_id: id.as_str().into(), role: "assistant" });
                self.state.own.insert(OwnMessage { id, bytes: 0 })
            }
        };
        own.bytes += size;
        let lossy = String::from_utf8_lossy(bytes);
        let undecodable = matches!(lossy, std::borrow::Cow::Owned(_));
        let mut delta = lossy.into_owned();
        if terminated {
            delta.push('\n');
        }
        out.emit(&Event::TextMessageContent { message_id: own.id.as_str().into(), delta: delta.into() });
        if undecodable {
            notices::undecodable(bytes, out);
        }
    }

    fn end_own(&mut self, out: &mut Emitter<'_>) {
        if let Some(own) = self.state.own.take() {
            out.emit(&Event::TextMessageEnd { message_id: own.id.into() });
        }
    }

    fn event(&mut self, kind: EventKind, event: Map<String, Value>, line: &str, out: &mut Emitter<'_>) {
        match kind {
            EventKind::RunStarted => return,
            EventKind::RunFinished => return self.run_finished(event),
            EventKind::RunError => return self.run_error(&event),
            _ => {}
        }
        let verdict = admit(kind, &event, &mut self.state);
        if verdict == Verdict::Wrap {
            return notices::raw(line, SOURCE, out);
        }
        if is_visible(kind) {
            self.end_own(out);
        }
        if verdict == Verdict::PassAfterGivingUp
            && let Some(call) = self.state.calls.give_up_oldest()
        {
            let message_id = self.state.unused_id(out);
            out.emit(&calls::given_up(&call, message_id));
        }
        // A carriage return between tokens is blank to JSON and a line break to a reader of server-sent events.
        let json = if line.contains('\r') { Value::Object(event).to_string() } else { line.to_owned() };
        out.emit_chunk(Chunk { kind, json });
    }

    fn run_finished(&mut self, mut event: Map<String, Value>) {
        self.take_usage(&event);
        if let Some(result) = event.remove("result").filter(|result| !result.is_null()) {
            self.state.result = Some(result);
        }
    }

    fn run_error(&mut self, event: &Map<String, Value>) {
        self.take_usage(event);
        let text = |name: &str| event.get(name).and_then(Value::as_str);
        self.state.failure = Some(exit::reported(text("code"), text("message").unwrap_or_default()));
    }

    fn take_usage(&mut self, event: &Map<String, Value>) {
        let usage = event.get("usage").and_then(|usage| Vec::<Usage>::deserialize(usage).ok());
        if let Some(usage) = usage {
            self.state.usage = usage;
        }
    }

    /// Closes everything, whatever the command left open.
    fn close(&mut self, out: &mut Emitter<'_>) {
        self.end_own(out);
        for call in self.state.calls.take() {
            if let Some(end) = calls::missing_end(&call) {
                out.emit(&end);
            }
            if !call.resolved {
                let message_id = self.state.unused_id(out);
                out.emit(&calls::interrupted(&call, message_id));
            }
        }
        // Newest first: a message of reasoning is closed before the reasoning around it.
        for open in std::mem::take(&mut self.state.open).into_iter().rev() {
            out.emit(&match open.what {
                Opened::Text => Event::TextMessageEnd { message_id: open.id.into() },
                Opened::Reasoning => Event::ReasoningEnd { message_id: open.id.into() },
                Opened::ReasoningMessage => Event::ReasoningMessageEnd { message_id: open.id.into() },
                Opened::Step => Event::StepFinished { step_name: open.id.into() },
            });
        }
    }
}

impl State {
    /// Draws an id that the command has not guessed and used for something that is open.
    fn unused_id(&self, out: &mut Emitter<'_>) -> String {
        loop {
            let id = out.next_id();
            if !self.message_is_open(&id) {
                return id;
            }
        }
    }
}

impl Translator for CommandTranslator {
    fn line(&mut self, line: PrintedLine<'_>, out: &mut Emitter<'_>) {
        match line {
            PrintedLine::Bytes { bytes, terminated } => {
                let trimmed = bytes.trim_ascii();
                match (check_printed(trimmed), std::str::from_utf8(trimmed)) {
                    (Ok((kind, event)), Ok(text)) => self.event(kind, event, text, out),
                    _ => self.text(bytes, terminated, out),
                }
            }
            PrintedLine::Oversized { bytes, sha256 } => notices::oversized(bytes, sha256, out),
            PrintedLine::Restarted => {
                self.close(out);
                self.state = State::default();
                notices::restarted(out);
            }
        }
    }

    fn finish(&mut self, exit: &AgentExit, out: &mut Emitter<'_>) -> Ended {
        self.close(out);
        let State { failure, usage, result, .. } = std::mem::take(&mut self.state);
        Ended { failure: failure.or_else(|| exit::failure(exit)), usage, result }
    }

    fn state(&self) -> Value {
        serde_json::to_value(&self.state).expect("plain data with text keys is JSON")
    }

    fn session(&self) -> Option<&str> {
        None
    }
}
