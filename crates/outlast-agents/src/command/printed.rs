//! Events that a command prints: may they go on to readers?

use outlast_core::event::EventKind;
use serde_json::{Map, Value};

use super::state::{Opened, State};

/// What becomes of a printed event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It goes on as it is.
    Pass,
    /// It goes on once the oldest call without a result was given up, to make room.
    PassAfterGivingUp,
    /// It does not fit what came before; readers get it wrapped.
    Wrap,
}

/// Judges the event against what is open, and notes what it opens and closes. Decided by the lines so far alone.
pub(super) fn admit(kind: EventKind, event: &Map<String, Value>, state: &mut State) -> Verdict {
    use EventKind as K;
    let id = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
    match kind {
        K::TextMessageStart => start(Opened::Text, id("messageId"), state),
        K::TextMessageContent => pass_if(state.is_open(Opened::Text, id("messageId"))),
        K::TextMessageEnd => end(Opened::Text, id("messageId"), state),
        K::ReasoningStart => start(Opened::Reasoning, id("messageId"), state),
        K::ReasoningEnd => end(Opened::Reasoning, id("messageId"), state),
        K::ReasoningMessageStart => start(Opened::ReasoningMessage, id("messageId"), state),
        K::ReasoningMessageContent => pass_if(state.is_open(Opened::ReasoningMessage, id("messageId"))),
        K::ReasoningMessageEnd => end(Opened::ReasoningMessage, id("messageId"), state),
        K::StepStarted => start(Opened::Step, id("stepName"), state),
        K::StepFinished => end(Opened::Step, id("stepName"), state),
        K::ToolCallStart => start_call(id("toolCallId"), state),
        K::ToolCallArgs => pass_if(state.calls.get(id("toolCallId")).is_some_and(|call| !call.ended)),
        K::ToolCallEnd => {
            let id = id("toolCallId");
            let open = state.calls.get(id).is_some_and(|call| !call.ended);
            state.calls.end(id);
            pass_if(open)
        }
        K::ToolCallResult => {
            let id = id("toolCallId");
            // A result of a call that is not known here may answer one of an earlier run, or one told in chunks.
            let again = state.calls.get(id).is_some_and(|call| call.resolved);
            state.calls.resolve(id);
            pass_if(!again)
        }
        _ => Verdict::Pass,
    }
}

/// Whether a reader sees the event as something said or done, so that printed text before it and after it are two
/// messages.
pub(super) fn is_visible(kind: EventKind) -> bool {
    use EventKind as K;
    !matches!(
        kind,
        K::Custom
            | K::Raw
            | K::StateSnapshot
            | K::StateDelta
            | K::StepStarted
            | K::StepFinished
            | K::ActivitySnapshot
            | K::ActivityDelta
    )
}

fn pass_if(fits: bool) -> Verdict {
    if fits { Verdict::Pass } else { Verdict::Wrap }
}

fn start(what: Opened, id: &str, state: &mut State) -> Verdict {
    let taken = match what {
        Opened::Text | Opened::ReasoningMessage => state.message_is_open(id),
        Opened::Reasoning | Opened::Step => state.is_open(what, id),
    };
    if taken || !state.has_room_for(id) {
        return Verdict::Wrap;
    }
    state.opened(what, id);
    Verdict::Pass
}

fn end(what: Opened, id: &str, state: &mut State) -> Verdict {
    let open = state.is_open(what, id);
    state.closed(what, id);
    pass_if(open)
}

fn start_call(id: &str, state: &mut State) -> Verdict {
    if state.calls.get(id).is_some() || id.len() > State::MAX_ID_BYTES {
        return Verdict::Wrap;
    }
    let full = state.calls.len() >= State::MAX_OPEN;
    if full && !state.calls.any_ended() {
        return Verdict::Wrap;
    }
    state.calls.begin(id.to_owned(), None);
    if full { Verdict::PassAfterGivingUp } else { Verdict::Pass }
}
