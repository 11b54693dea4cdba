//! Events that say what became of a line that is not in the agent's own words.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outlast_core::event::Event;
use serde_json::json;
use serde_json::value::RawValue;

use super::json::repair_surrogates;
use crate::Emitter;

/// The name of the event for a line that is too long to keep: `{bytes, sha256}`.
const OVERSIZED: &str = "outlast.oversized-line";
/// The name of the event for a line that is no UTF-8: `{base64}`.
const UNDECODABLE: &str = "outlast.undecodable-line";
/// The name of the event for an agent that was started afresh: `{reason}`.
const RESTARTED: &str = "outlast.session-restarted";

pub(crate) fn oversized(bytes: u64, sha256: &str, out: &mut Emitter<'_>) {
    out.emit(&Event::Custom { name: OVERSIZED.into(), value: json!({"bytes": bytes, "sha256": sha256}) });
}

/// Tells all bytes of a line of which an event has told only what is text.
pub(crate) fn undecodable(line: &[u8], out: &mut Emitter<'_>) {
    out.emit(&Event::Custom { name: UNDECODABLE.into(), value: json!({"base64": STANDARD.encode(line)}) });
}

pub(crate) fn restarted(out: &mut Emitter<'_>) {
    let reason = "the agent had lost the session that it was to resume; it was started afresh";
    out.emit(&Event::Custom { name: RESTARTED.into(), value: json!({"reason": reason}) });
}

/// Tells a line as it was printed: as JSON if it is some, as text if not.
pub(crate) fn raw(line: &str, source: &'static str, out: &mut Emitter<'_>) {
    let line = repair_surrogates(line.trim_matches([' ', '\t', '\r']));
    let source = Cow::Borrowed(source);
    match serde_json::from_str::<&RawValue>(&line) {
        // A carriage return between tokens is blank to JSON and a line break to a reader of server-sent events.
        Ok(event) if !event.get().contains('\r') => out.emit(&Event::Raw { event, source }),
        _ => {
            let event =
                serde_json::value::to_raw_value(line.as_ref()).expect("any text can be written as JSON");
            out.emit(&Event::Raw { event: &event, source });
        }
    }
}
