//! Tool calls that are not settled yet.

use outlast_core::event::Event;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The content of a result that never came.
const INTERRUPTED: &str =
    r#"{"status":"interrupted","message":"the agent ended before this call's result was recorded"}"#;

/// The content of a result that is given up while the agent goes on, because too many calls wait for one.
const GIVEN_UP: &str =
    r#"{"status":"unknown","message":"the agent went on without recording this call's result"}"#;

/// A call that was begun and is not settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Call {
    /// Its id, as streamed.
    pub(crate) id: String,
    /// Whether its arguments are complete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ended: bool,
    /// Whether its result was told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) resolved: bool,
    /// The call whose sub-agent made this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) within: Option<String>,
}

/// The calls that are not settled, in the order in which they were begun.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Calls(Vec<Call>);

impl Calls {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Call> {
        self.0.iter().find(|call| call.id == id)
    }

    pub(crate) fn begin(&mut self, id: String, within: Option<String>) {
        self.0.push(Call { id, ended: false, resolved: false, within });
    }

    /// The call's arguments are complete.
    pub(crate) fn end(&mut self, id: &str) {
        self.change(id, |call| call.ended = true);
    }

    /// The call's result was told.
    pub(crate) fn resolve(&mut self, id: &str) {
        self.change(id, |call| call.resolved = true);
    }

    /// Whether there is a call that waits for nothing but its result.
    pub(crate) fn any_ended(&self) -> bool {
        self.0.iter().any(|call| call.ended)
    }

    /// Takes out the oldest call whose arguments are complete, to make room for another.
    pub(crate) fn give_up_oldest(&mut self) -> Option<Call> {
        let at = self.0.iter().position(|call| call.ended)?;
        Some(self.0.remove(at))
    }

    /// Takes out every call.
    pub(crate) fn take(&mut self) -> Vec<Call> {
        std::mem::take(&mut self.0)
    }

    fn change(&mut self, id: &str, change: impl FnOnce(&mut Call)) {
        if let Some(at) = self.0.iter().position(|call| call.id == id) {
            change(&mut self.0[at]);
            if self.0[at].ended && self.0[at].resolved {
                self.0.remove(at);
            }
        }
    }
}

/// The end of a call that the agent left open, if it did.
pub(crate) fn missing_end(call: &Call) -> Option<Event<'_>> {
    (!call.ended).then(|| Event::ToolCallEnd { tool_call_id: call.id.as_str().into() })
}

/// The result of a call whose agent ended without telling one.
pub(crate) fn interrupted(call: &Call, message_id: String) -> Event<'_> {
    without_result(call, message_id, INTERRUPTED)
}

/// The result of a call on which the agent gave no result for too long.
pub(crate) fn given_up(call: &Call, message_id: String) -> Event<'_> {
    without_result(call, message_id, GIVEN_UP)
}

fn without_result<'a>(call: &'a Call, message_id: String, content: &'static str) -> Event<'a> {
    Event::ToolCallResult {
        message_id: message_id.into(),
        tool_call_id: call.id.as_str().into(),
        content: content.into(),
        role: "tool",
        metadata: Some(output_error()),
    }
}

/// The metadata of a result that is a failure.
pub(crate) fn output_error() -> Value {
    json!({"tanstack": {"state": "output-error"}})
}
