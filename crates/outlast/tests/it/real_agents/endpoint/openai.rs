//! OpenAI's Responses, as Codex speaks them.

use serde_json::{Value, json};

use super::http::Reply;
use super::script::{self, Said};

/// What a request says.
pub fn conversation(request: &Value) -> Vec<Said> {
    let items = request["input"].as_array().map(Vec::as_slice).unwrap_or_default();
    let said = items.iter().filter_map(|item| match item["type"].as_str()? {
        "message" => {
            let text = text(&item["content"]);
            match item["role"].as_str()? {
                // What Codex adds of its own accord is not what anybody said.
                "user" => (!text.starts_with('<')).then_some(Said::User(text)),
                "assistant" => Some(Said::Model(text)),
                _ => None,
            }
        }
        "function_call_output" | "custom_tool_call_output" => Some(Said::Tool(item["output"].to_string())),
        _ => None,
    });
    said.collect()
}

fn text(content: &Value) -> String {
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    parts.iter().filter_map(|part| part["text"].as_str()).collect()
}

/// What the script answers.
pub fn reply(request: &Value, conversation: &[Said], number: usize) -> Reply {
    let turn = script::next(conversation);
    let content = json!([{"type": "output_text", "text": turn.text, "annotations": []}]);
    let mut items = vec![json!({"type": "message", "id": format!("msg_{number}"), "role": "assistant",
        "status": "completed", "content": content})];
    if let Some(command) = &turn.shell {
        let Some(call) = shell_call(request, command, number) else {
            let message = format!("none of these tools is a shell: {}", request["tools"]);
            return Reply::Json(400, json!({"error": {"type": "invalid_request_error", "message": message}}));
        };
        items.push(call);
    }
    let usage = json!({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 50}, "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 120});
    let response = |status: &str, output: &[Value], usage: &Value| {
        json!({"id": format!("resp_{number}"), "object": "response", "created_at": 0, "model": request["model"],
            "status": status, "output": output, "usage": usage})
    };
    let mut events = Events(Vec::new());
    events.add("response.created", json!({"response": response("in_progress", &[], &Value::Null)}));
    for (index, item) in items.iter().enumerate() {
        stream_item(index, item, &mut events);
    }
    events.add("response.completed", json!({"response": response("completed", &items, &usage)}));
    Reply::Stream(events.0)
}

/// A call of the shell that Codex offers. The command may take long: the tests decide when it ends.
fn shell_call(request: &Value, command: &str, number: usize) -> Option<Value> {
    let tools = request["tools"].as_array()?;
    let offered = |name: &str| tools.iter().any(|tool| tool["name"] == name);
    let (name, arguments) = if offered("exec_command") {
        ("exec_command", json!({"cmd": command, "yield_time_ms": 30_000}))
    } else if offered("shell_command") {
        ("shell_command", json!({"command": command, "timeout_ms": 60_000}))
    } else {
        return None;
    };
    let ids = (format!("fc_{number}"), format!("call_{number}"));
    Some(json!({"type": "function_call", "id": ids.0, "call_id": ids.1, "name": name,
        "arguments": arguments.to_string(), "status": "completed"}))
}

struct Events(Vec<(&'static str, Value)>);

impl Events {
    fn add(&mut self, name: &'static str, mut data: Value) {
        data["type"] = name.into();
        data["sequence_number"] = self.0.len().into();
        self.0.push((name, data));
    }
}

fn stream_item(index: usize, item: &Value, events: &mut Events) {
    let mut added = item.clone();
    added["status"] = "in_progress".into();
    if item["type"] == "message" {
        added["content"] = json!([]);
    } else {
        added["arguments"] = "".into();
    }
    events.add("response.output_item.added", json!({"output_index": index, "item": added}));
    for word in item["content"][0]["text"].as_str().unwrap_or_default().split_inclusive(' ') {
        let place = json!({"item_id": item["id"], "output_index": index, "content_index": 0, "delta": word});
        events.add("response.output_text.delta", place);
    }
    events.add("response.output_item.done", json!({"output_index": index, "item": item}));
}
