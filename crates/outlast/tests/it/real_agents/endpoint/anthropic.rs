//! Anthropic's Messages, as Claude Code speaks them.

use serde_json::{Value, json};

use super::http::Reply;
use super::script::{self, Said};

/// What a request says.
pub fn conversation(request: &Value) -> Vec<Said> {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    messages.iter().flat_map(message).collect()
}

fn message(message: &Value) -> Vec<Said> {
    let say: fn(String) -> Said = match message["role"].as_str() {
        Some("user") => Said::User,
        Some("assistant") => Said::Model,
        // What Claude Code adds of its own accord is not what anybody said.
        _ => return Vec::new(),
    };
    let say = |text: &str| say(text.to_owned());
    let Value::Array(blocks) = &message["content"] else {
        return message["content"].as_str().map(say).into_iter().collect();
    };
    let said = blocks.iter().filter_map(|block| match block["type"].as_str()? {
        // The same.
        "text" => block["text"].as_str().filter(|text| !text.starts_with("<system-reminder>")).map(say),
        "tool_result" => Some(Said::Tool(block["content"].to_string())),
        _ => None,
    });
    said.collect()
}

/// What the script answers.
pub fn reply(request: &Value, conversation: &[Said], number: usize) -> Reply {
    let turn = script::next(conversation);
    let mut blocks = vec![json!({"type": "text", "text": turn.text})];
    if let Some(command) = &turn.shell {
        let input = json!({"command": command, "description": "What the script says"});
        blocks.push(
            json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": "Bash", "input": input}),
        );
    }
    let stop_reason = if turn.shell.is_some() { "tool_use" } else { "end_turn" };
    let usage = json!({"input_tokens": 100, "cache_read_input_tokens": 50, "cache_creation_input_tokens": 0,
        "output_tokens": 20});
    let mut whole = json!({"id": format!("msg_{number}"), "type": "message", "role": "assistant",
        "model": request["model"], "content": blocks, "stop_reason": stop_reason, "stop_sequence": null,
        "usage": usage});
    if request["stream"] != true {
        return Reply::Json(200, whole);
    }
    whole["content"] = json!([]);
    whole["stop_reason"] = Value::Null;
    let mut events = Events(Vec::new());
    events.add("message_start", json!({"message": whole}));
    for (index, block) in blocks.iter().enumerate() {
        stream_block(index, block, &mut events);
    }
    let delta = json!({"stop_reason": stop_reason, "stop_sequence": null});
    events.add("message_delta", json!({"delta": delta, "usage": usage}));
    events.add("message_stop", json!({}));
    Reply::Stream(events.0)
}

struct Events(Vec<(&'static str, Value)>);

impl Events {
    fn add(&mut self, name: &'static str, mut data: Value) {
        data["type"] = name.into();
        self.0.push((name, data));
    }
}

fn stream_block(index: usize, block: &Value, events: &mut Events) {
    let mut start = block.clone();
    let deltas: Vec<Value> = match block["text"].as_str() {
        Some(text) => {
            start["text"] = "".into();
            text.split_inclusive(' ').map(|word| json!({"type": "text_delta", "text": word})).collect()
        }
        None => {
            start["input"] = json!({});
            let input = block["input"].to_string();
            vec![json!({"type": "input_json_delta", "partial_json": input})]
        }
    };
    events.add("content_block_start", json!({"index": index, "content_block": start}));
    for delta in deltas {
        events.add("content_block_delta", json!({"index": index, "delta": delta}));
    }
    events.add("content_block_stop", json!({"index": index}));
}
