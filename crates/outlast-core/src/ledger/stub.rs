//! What stands in the database for a body that is elsewhere, and is shown where that is missing.

use serde_json::Value;

use crate::event::Chunk;
use crate::transcript::Message;

/// How many bytes of each text stay, at most.
const KEEP: usize = 1024;

/// The message with its long texts cut, and said so.
pub fn stub_message(message: &Message) -> Message {
    let mut stub = message.clone();
    for text in stub.content.iter_mut().chain(stub.error.iter_mut()) {
        cut(text);
    }
    for call in &mut stub.tool_calls {
        // Arguments are JSON for whoever reads them, and a piece of JSON is none.
        if call.function.arguments.len() > KEEP {
            let told = format!("[{} bytes are missing]", call.function.arguments.len());
            call.function.arguments = serde_json::json!({ "missing": told }).to_string();
        }
    }
    stub
}

/// The event with its long texts cut, and said so.
pub fn stub_event(chunk: &Chunk) -> Chunk {
    let mut event: Value = serde_json::from_str(&chunk.json).unwrap_or(Value::Null);
    shorten(&mut event);
    let mut json = event.to_string();
    if json.len() > 64 * 1024 {
        // Many small texts: of those, nothing is kept but what the event is.
        let kept = ["type", "messageId", "toolCallId", "role", "name", "timestamp"];
        if let Value::Object(fields) = &mut event {
            fields.retain(|name, _| kept.contains(&name.as_str()));
        }
        json = event.to_string();
    }
    Chunk { kind: chunk.kind, json }
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) => cut(text),
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}

fn cut(text: &mut String) {
    if text.len() > KEEP {
        let bytes = text.len();
        let mut end = KEEP;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(&format!("… [{} of {bytes} bytes are missing]", bytes - end));
    }
}
