//! The forms of a stream. What an event looks like on the wire is decided here and nowhere else.

use outlast_core::Seq;
use outlast_store::StoredEvent;
use serde::Serialize;

/// How events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Server-sent events, with comments between them that clients skip.
    Sse,
    /// A line of JSON for each event, `{"id","chunk"}`, with empty lines between them that clients skip.
    Ndjson,
    /// Server-sent events, with named events between them that clients may act on.
    Native,
}

impl Form {
    pub fn content_type(self) -> &'static str {
        match self {
            Form::Sse | Form::Native => "text/event-stream",
            Form::Ndjson => "application/x-ndjson",
        }
    }

    /// The events, each with its offset. The stored JSON goes out byte for byte; it holds no line breaks.
    pub fn events<'e>(self, events: impl IntoIterator<Item = &'e StoredEvent>, out: &mut Vec<u8>) {
        for StoredEvent { seq, json, .. } in events {
            let id = seq.offset();
            let (before, between, after): (&[u8], &[u8], &[u8]) = match self {
                Form::Sse | Form::Native => (b"id: ", b"\ndata: ", b"\n\n"),
                Form::Ndjson => (b"{\"id\":\"", b"\",\"chunk\":", b"}\n"),
            };
            out.reserve(id.len() + json.len() + 32);
            for part in [before, id.as_bytes(), between, json.as_bytes(), after] {
                out.extend_from_slice(part);
            }
        }
    }

    /// What tells that everything stored was sent and the log is open: what follows is live.
    pub fn caught_up(self, at: Seq) -> Vec<u8> {
        match self {
            Form::Sse => format!(": caught-up {}\n\n", at.offset()).into_bytes(),
            Form::Ndjson => b"\n".to_vec(),
            Form::Native => named("caught-up", &CaughtUp { offset: at.offset() }),
        }
    }

    /// What tells that the connection lives. The native form has more to say, see [`super::RunState`].
    pub fn heartbeat(self) -> Vec<u8> {
        match self {
            Form::Sse | Form::Native => b": heartbeat\n\n".to_vec(),
            Form::Ndjson => b"\n".to_vec(),
        }
    }
}

#[derive(Serialize)]
struct CaughtUp {
    offset: String,
}

/// A named server-sent event without an id: it moves no client's cursor.
pub(crate) fn named(name: &str, data: &impl Serialize) -> Vec<u8> {
    // Plain data with text keys always serialises; JSON text holds no line breaks.
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_core::event::Origin;

    #[test]
    fn wire_forms() {
        let event = StoredEvent {
            seq: Seq(3),
            at: 0,
            origin: Origin::Host,
            json: r#"{"type":"RAW"}"#.into(),
            pointer: None,
        };
        let text = |form: Form| {
            let mut out = Vec::new();
            form.events([&event, &event], &mut out);
            String::from_utf8(out).expect("utf-8")
        };
        let sse = "id: 0000000000000003\ndata: {\"type\":\"RAW\"}\n\n";
        assert_eq!(text(Form::Sse), sse.repeat(2));
        assert_eq!(text(Form::Native), sse.repeat(2));
        let line = "{\"id\":\"0000000000000003\",\"chunk\":{\"type\":\"RAW\"}}\n";
        assert_eq!(text(Form::Ndjson), line.repeat(2));
        assert_eq!(Form::Sse.caught_up(Seq(3)), b": caught-up 0000000000000003\n\n");
        assert_eq!(
            Form::Native.caught_up(Seq(3)),
            b"event: caught-up\ndata: {\"offset\":\"0000000000000003\"}\n\n"
        );
    }

    /// Whatever is between events must be skipped by clients that look only at events.
    #[test]
    fn nothing_between_events_looks_like_one() {
        for form in [Form::Sse, Form::Ndjson] {
            for bytes in [form.caught_up(Seq(1)), form.heartbeat()] {
                let text = String::from_utf8(bytes).expect("utf-8");
                let skipped =
                    |line: &str| line.trim().is_empty() || (form == Form::Sse && line.starts_with(':'));
                assert!(text.ends_with('\n') && text.lines().all(skipped), "{text:?}");
            }
        }
    }
}
