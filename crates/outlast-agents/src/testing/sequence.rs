//! Are these events a sequence that AG-UI's readers accept?

use std::collections::{BTreeMap, BTreeSet};

use outlast_core::event::{Chunk, EventKind, check_printed};
use serde_json::{Map, Value};

use super::Violation;

#[derive(Default)]
struct Open {
    texts: BTreeSet<String>,
    reasoning: BTreeSet<String>,
    reasoning_messages: BTreeSet<String>,
    steps: BTreeSet<String>,
    /// Whether the arguments of a call are complete, by its id; calls without a result.
    calls: BTreeMap<String, bool>,
    /// Calls that have a result and are not ended.
    answered: BTreeSet<String>,
}

/// Checks a run's whole sequence of events from its journal: each is an event of AG-UI's form on one line, what is
/// continued or ended was begun, nothing is begun twice at a time, nothing is left open, every tool call has a result, and
/// nothing is written that is Outlast's to write (`RUN_STARTED`, `RUN_FINISHED`, `RUN_ERROR`).
pub fn check_sequence(events: &[Chunk]) -> Result<(), Violation> {
    let mut open = Open::default();
    for (index, chunk) in events.iter().enumerate() {
        open.take(chunk).map_err(|what| {
            let json: String = chunk.json.chars().take(300).collect();
            Violation(format!("event {index} {what}: {json}"))
        })?;
    }
    open.nothing_left().map_err(|what| Violation(format!("at the end of {} events {what}", events.len())))
}

impl Open {
    fn take(&mut self, chunk: &Chunk) -> Result<(), String> {
        use EventKind as K;
        if chunk.json.contains(['\n', '\r']) {
            return Err("holds a line break".into());
        }
        let (kind, event) = check_printed(chunk.json.as_bytes()).map_err(|_| "is no AG-UI event")?;
        if kind != chunk.kind {
            return Err(format!("is of type {} and is passed as {}", kind.as_str(), chunk.kind.as_str()));
        }
        let message = || text(&event, "messageId");
        let call = text(&event, "toolCallId");
        match kind {
            K::RunStarted | K::RunFinished | K::RunError => Err("is Outlast's to write".into()),
            K::TextMessageStart => begin(&mut self.texts, message()),
            K::TextMessageContent => inside(&self.texts, &message()),
            K::TextMessageEnd => end(&mut self.texts, &message()),
            K::ReasoningStart => begin(&mut self.reasoning, message()),
            K::ReasoningEnd => end(&mut self.reasoning, &message()),
            K::ReasoningMessageStart => begin(&mut self.reasoning_messages, message()),
            K::ReasoningMessageContent => inside(&self.reasoning_messages, &message()),
            K::ReasoningMessageEnd => end(&mut self.reasoning_messages, &message()),
            K::StepStarted => begin(&mut self.steps, text(&event, "stepName")),
            K::StepFinished => end(&mut self.steps, &text(&event, "stepName")),
            K::ToolCallStart if self.calls.contains_key(&call) || self.answered.contains(&call) => {
                Err("begins a tool call that is not settled".into())
            }
            K::ToolCallStart => {
                self.calls.insert(call, false);
                Ok(())
            }
            K::ToolCallArgs if self.is_open(&call) => Ok(()),
            K::ToolCallEnd if self.answered.remove(&call) => Ok(()),
            K::ToolCallEnd if self.is_open(&call) => {
                self.calls.insert(call, true);
                Ok(())
            }
            K::ToolCallArgs | K::ToolCallEnd => Err("is about a tool call that is not open".into()),
            K::ToolCallResult => {
                if self.calls.remove(&call) == Some(false) {
                    self.answered.insert(call);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn is_open(&self, call: &str) -> bool {
        self.calls.get(call) == Some(&false) || self.answered.contains(call)
    }

    fn nothing_left(&self) -> Result<(), String> {
        let open = [&self.texts, &self.reasoning, &self.reasoning_messages, &self.steps, &self.answered];
        if let Some(id) = open.into_iter().flatten().next() {
            return Err(format!("{id:?} is still open"));
        }
        match self.calls.keys().next() {
            Some(id) => Err(format!("the tool call {id:?} has no result")),
            None => Ok(()),
        }
    }
}

fn text(event: &Map<String, Value>, name: &str) -> String {
    event.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn begin(open: &mut BTreeSet<String>, id: String) -> Result<(), String> {
    if open.insert(id) { Ok(()) } else { Err("begins what is open already".into()) }
}

fn inside(open: &BTreeSet<String>, id: &str) -> Result<(), String> {
    if open.contains(id) { Ok(()) } else { Err("continues what is not open".into()) }
}

fn end(open: &mut BTreeSet<String>, id: &str) -> Result<(), String> {
    if open.remove(id) { Ok(()) } else { Err("ends what is not open".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &[&str]) -> Result<(), String> {
        let chunk = |line: &&str| {
            let kind = check_printed(line.as_bytes()).map_or(EventKind::Raw, |(kind, _)| kind);
            Chunk { kind, json: (*line).to_owned() }
        };
        let events: Vec<Chunk> = lines.iter().map(chunk).collect();
        check_sequence(&events).map_err(|violation| violation.0)
    }

    const START: &str = r#"{"type":"TOOL_CALL_START","toolCallId":"t","toolCallName":"n"}"#;
    const END: &str = r#"{"type":"TOOL_CALL_END","toolCallId":"t"}"#;
    const RESULT: &str = r#"{"type":"TOOL_CALL_RESULT","toolCallId":"t","messageId":"m","content":""}"#;
    const TEXT: &str = r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#;
    const TEXT_END: &str = r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#;

    #[test]
    fn what_readers_accept() {
        assert_eq!(check(&[TEXT, START, TEXT_END, END, RESULT, TEXT, TEXT_END]), Ok(()));
        assert_eq!(check(&[START, RESULT, END]), Ok(()));
        assert_eq!(check(&[RESULT]), Ok(()), "the answer to a call of an earlier run");
    }

    #[test]
    fn what_they_do_not() {
        let broken: &[&[&str]] = &[
            &[TEXT],
            &[TEXT_END],
            &[TEXT, TEXT, TEXT_END],
            &[r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":""}"#],
            &[START, END],
            &[START, RESULT],
            &[START, START, END, RESULT],
            &[END],
            &[START, END, END, RESULT],
            &[r#"{"type":"RUN_FINISHED"}"#],
            &["nonsense"],
            &["{\"type\":\"RAW\",\n\"event\":1}"],
            &[r#"{"type":"STEP_STARTED","stepName":"s"}"#],
        ];
        for lines in broken {
            assert!(check(lines).is_err(), "{lines:?}");
        }
    }
}
