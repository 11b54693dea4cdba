//! A stream for people: text as it comes, a tool call as one line with its outcome.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use outlast_core::event::LooseText;
use outlast_core::run::{RunRecord, Status};
use outlast_store::StoredEvent;
use serde::Deserialize;
use serde_json::Value;

use super::safe::{printable, printable_text};
use crate::config::show_duration;

/// How much of arguments and of a result fits into a call's line.
const ARGUMENTS_CHARS: usize = 100;
const OUTCOME_CHARS: usize = 80;

/// What has been printed so far, as far as it matters for what comes next.
#[derive(Debug)]
pub(super) struct Human {
    terminal: bool,
    colour: bool,
    /// Whether the last line is still open.
    open_line: bool,
    /// The call whose line is still open, awaiting its outcome.
    open_call: Option<String>,
    calls: HashMap<String, Call>,
}

#[derive(Debug, Default)]
struct Call {
    name: String,
    arguments: String,
    shown: bool,
    at: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Fields<'a> {
    #[serde(rename = "type")]
    kind: LooseText<'a>,
    #[serde(default)]
    delta: LooseText<'a>,
    #[serde(default)]
    tool_call_id: LooseText<'a>,
    #[serde(default)]
    tool_call_name: Option<LooseText<'a>>,
    #[serde(default)]
    content: LooseText<'a>,
    #[serde(default)]
    metadata: Option<Value>,
    #[serde(default)]
    name: LooseText<'a>,
    #[serde(default)]
    value: Option<Value>,
}

impl Human {
    pub(super) fn new(terminal: bool, colour: bool) -> Self {
        let colour = colour && terminal;
        Human { terminal, colour, open_line: false, open_call: None, calls: HashMap::new() }
    }

    pub(super) fn event(&mut self, out: &mut impl Write, event: &StoredEvent) -> std::io::Result<()> {
        let Ok(fields) = serde_json::from_str::<Fields<'_>>(&event.json) else {
            return Ok(());
        };
        let (delta, call) = (&*fields.delta, &*fields.tool_call_id);
        match &*fields.kind {
            "TEXT_MESSAGE_CONTENT" | "TEXT_MESSAGE_CHUNK" => self.text(out, delta, false),
            "REASONING_MESSAGE_CONTENT" | "REASONING_MESSAGE_CHUNK" => self.text(out, delta, true),
            "TEXT_MESSAGE_END" | "REASONING_MESSAGE_END" => self.end_line(out),
            "TOOL_CALL_START" => {
                let name = fields.tool_call_name.as_deref().unwrap_or("tool").to_owned();
                self.calls.insert(call.to_owned(), Call { name, at: event.at, ..Call::default() });
                Ok(())
            }
            "TOOL_CALL_ARGS" => {
                if let Some(call) = self.calls.get_mut(call) {
                    call.arguments.push_str(delta);
                }
                Ok(())
            }
            "TOOL_CALL_END" => self.call(out, call),
            "TOOL_CALL_RESULT" => {
                let failed = fields
                    .metadata
                    .as_ref()
                    .and_then(|metadata| metadata.pointer("/tanstack/state"))
                    .is_some_and(|state| state == "output-error");
                self.outcome(out, call, &fields.content, failed, event.at)
            }
            // The cause is told with the summary, on standard error: in a pipe it must not look like the agent's text.
            "RUN_ERROR" => self.end_line(out),
            "CUSTOM" => self.custom(out, &fields.name, fields.value.as_ref()),
            _ => Ok(()),
        }
    }

    /// Ends the line that is being written, if one is.
    pub(super) fn end_line(&mut self, out: &mut impl Write) -> std::io::Result<()> {
        self.open_call = None;
        if std::mem::take(&mut self.open_line) {
            writeln!(out)?;
        }
        Ok(())
    }

    /// The last line: how it ended and how long it took.
    pub(super) fn summary(&self, run: &RunRecord) -> String {
        let took = run.finished_at.map_or(0, |at| at.saturating_sub(run.started_at));
        let took = show_duration(Duration::from_millis(took));
        let colour = std::io::stderr().is_terminal() && self.colour;
        let paint = |code: &str, text: &str| {
            if colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
        };
        let cause = run.error.as_ref().map_or_else(String::new, |error| {
            format!(": {} ({})", printable_text(error.message.trim_end()), printable(&error.code))
        });
        match run.status {
            Status::Completed => paint("32", &format!("outlast: completed after {took}")),
            Status::Failed => paint("31", &format!("outlast: failed after {took}{cause}")),
            Status::Aborted => paint("33", &format!("outlast: aborted after {took}{cause}")),
            Status::Running | Status::Interrupted => format!("outlast: {} since {took}", run.status),
        }
    }

    fn text(&mut self, out: &mut impl Write, delta: &str, dim: bool) -> std::io::Result<()> {
        if delta.is_empty() {
            return Ok(());
        }
        if self.open_call.is_some() {
            self.end_line(out)?;
        }
        // In a pipe the text is the data, byte for byte; on a terminal it must not command the terminal.
        let text = if self.terminal { Cow::Owned(printable_text(delta)) } else { Cow::Borrowed(delta) };
        if dim {
            out.write_all(self.paint("2", &text).as_bytes())?;
        } else {
            out.write_all(text.as_bytes())?;
        }
        self.open_line = !text.ends_with('\n');
        Ok(())
    }

    fn call(&mut self, out: &mut impl Write, id: &str) -> std::io::Result<()> {
        self.end_line(out)?;
        let Some(call) = self.calls.get_mut(id) else {
            return Ok(());
        };
        call.shown = true;
        let name = printable(&call.name);
        let arguments = shorten(&arguments_line(&call.arguments), ARGUMENTS_CHARS);
        write!(out, "{} {} {}", self.paint("36", "●"), self.paint("1", &name), arguments)?;
        self.open_line = true;
        self.open_call = Some(id.to_owned());
        Ok(())
    }

    fn outcome(
        &mut self,
        out: &mut impl Write,
        id: &str,
        content: &str,
        failed: bool,
        at: u64,
    ) -> std::io::Result<()> {
        let call = self.calls.remove(id).unwrap_or_default();
        if self.open_call.as_deref() != Some(id) {
            self.end_line(out)?;
            let name = if call.name.is_empty() { "tool".to_owned() } else { printable(&call.name) };
            write!(out, "  {} {name}", self.paint("36", "↳"))?;
        }
        // The times are those of the log: what one append has gathered happened at one time as far as it knows.
        let took = Duration::from_millis(at.saturating_sub(call.at));
        let took = if took.is_zero() { String::new() } else { format!(" in {}", show_duration(took)) };
        // Codex tells a command's result as an object; what the command printed tells most.
        let printed = serde_json::from_str::<Value>(content).ok().and_then(|value| {
            match value.get("aggregated_output") {
                Some(Value::String(output)) => Some(output.clone()),
                _ => None,
            }
        });
        let content = printed.as_deref().unwrap_or(content);
        let first = content.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
        let first = shorten(first, OUTCOME_CHARS);
        let outcome = if failed { self.paint("31", "failed") } else { self.paint("32", "ok") };
        let rest = if first.is_empty() { String::new() } else { format!(": {first}") };
        writeln!(out, " → {outcome}{took}{}", self.paint("2", &rest))?;
        self.open_line = false;
        self.open_call = None;
        Ok(())
    }

    fn custom(&mut self, out: &mut impl Write, name: &str, value: Option<&Value>) -> std::io::Result<()> {
        let text = |key: &str| match value.and_then(|value| value.get(key)) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        };
        let line = match name {
            "outlast.session-restarted" => "the agent had lost its session and was started afresh".to_owned(),
            "outlast.oversized-line" => format!("a line of {} bytes was too long to keep", text("bytes")),
            "codex.error" | "codex.warning" => format!("codex: {}", text("message")),
            "claude-code.api-retry" => {
                format!("the model's service is asked again (attempt {})", text("attempt"))
            }
            _ => return Ok(()),
        };
        self.end_line(out)?;
        writeln!(out, "{}", self.paint("2", &printable(&line)))
    }

    fn paint<'t>(&self, code: &str, text: &'t str) -> Cow<'t, str> {
        if self.colour && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m").into()
        } else {
            text.into()
        }
    }
}

/// The arguments of a call in a line: the one value that tells most, where there is one.
fn arguments_line(arguments: &str) -> String {
    let Ok(Value::Object(object)) = serde_json::from_str::<Value>(arguments) else {
        return arguments.to_owned();
    };
    let telling = ["command", "cmd", "file_path", "path", "pattern", "query", "url"];
    let value = telling.iter().find_map(|key| object.get(*key)).or_else(|| object.values().next());
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

/// The first line, cut to so many characters.
pub(in crate::cli) fn shorten(text: &str, chars: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    let more = text.lines().nth(1).is_some() || line.chars().count() > chars;
    let mut short: String = printable(line).chars().take(chars).collect();
    if more {
        short.push('…');
    }
    short
}
