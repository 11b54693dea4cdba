//! AG-UI's `RunAgentInput`.

use outlast_core::ThreadId;
use outlast_core::canonical;
use outlast_core::run::OnDisconnect;
use outlast_core::transcript::{FunctionCall, Message, Role, ToolCall};
use serde_json::{Map, Value};

use crate::error::{Answer, ApiError};
use crate::names;

/// A request for a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Input {
    pub thread_id: ThreadId,
    pub run_id: Option<String>,
    pub messages: Vec<Sent>,
    pub agent: Option<String>,
    pub model: Option<String>,
    pub on_disconnect: Option<OnDisconnect>,
    /// What makes the same request the same: the whole body but for the run's id, which has other places too.
    pub digest: String,
}

/// A message of the request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sent {
    pub message: Message,
    /// The first part of its content that is no text, by its path and type.
    pub not_text: Option<String>,
}

impl Input {
    /// Reads a body. An error names the field that is wrong.
    pub fn parse(body: &[u8]) -> Answer<Input> {
        let value: Value = serde_json::from_slice(body)
            .map_err(|error| ApiError::invalid(format!("the body is not JSON: {error}")))?;
        let Value::Object(mut body) = value else {
            return Err(ApiError::invalid("the body must be a JSON object (RunAgentInput)"));
        };
        let run_id = text(&body, "runId")?.map(str::to_owned);
        let thread_id = text(&body, "threadId")?
            .ok_or_else(|| ApiError::invalid("threadId is missing: it names the conversation"))?;
        let thread_id = names::thread_id(thread_id)?;
        for name in ["tools", "context"] {
            array(&body, name)?;
        }
        let messages = array(&body, "messages")?
            .ok_or_else(|| ApiError::invalid("messages is missing: it holds the conversation"))?;
        let messages = messages.iter().enumerate().filter_map(|(n, value)| message(n, value).transpose());
        let messages = messages.collect::<Answer<Vec<Sent>>>()?;
        // Older clients send the properties as `data`.
        let props = match object(&body, "forwardedProps")? {
            Some(props) => Some(props),
            None => object(&body, "data")?,
        };
        let prop = |name: &str| match props {
            Some(props) => text(props, name)
                .map_err(|error| ApiError::invalid(format!("forwardedProps.{}", error.message))),
            None => Ok(None),
        };
        let on_disconnect = match prop("onDisconnect")? {
            None => None,
            Some(text) => Some(OnDisconnect::parse(text).ok_or_else(|| {
                ApiError::invalid(format!(
                    "forwardedProps.onDisconnect must be \"detach\" or \"cancel\", not {text:?}"
                ))
            })?),
        };
        let (agent, model) = (prop("agent")?.map(str::to_owned), prop("model")?.map(str::to_owned));
        body.remove("runId");
        let digest = canonical::digest(&Value::Object(body));
        Ok(Input { thread_id, run_id, messages, agent, model, on_disconnect, digest })
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn wrong(path: &str, must: &str, value: &Value) -> ApiError {
    ApiError::invalid(format!("{path} must be {must}, not {}", kind(value)))
}

fn text<'v>(fields: &'v Map<String, Value>, name: &str) -> Answer<Option<&'v str>> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(wrong(name, "a string", other)),
    }
}

fn array<'v>(fields: &'v Map<String, Value>, name: &str) -> Answer<Option<&'v [Value]>> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(wrong(name, "an array", other)),
    }
}

fn object<'v>(fields: &'v Map<String, Value>, name: &str) -> Answer<Option<&'v Map<String, Value>>> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(inner)) => Ok(Some(inner)),
        Some(other) => Err(wrong(name, "an object", other)),
    }
}

/// A message; none for a kind that is no part of a conversation.
fn message(n: usize, value: &Value) -> Answer<Option<Sent>> {
    let at = |error: ApiError| ApiError::invalid(format!("messages[{n}].{}", error.message));
    let Value::Object(fields) = value else {
        return Err(wrong(&format!("messages[{n}]"), "an object", value));
    };
    let needed = |name: &str| {
        text(fields, name)
            .map_err(at)?
            .filter(|text| !text.is_empty())
            .ok_or_else(|| ApiError::invalid(format!("messages[{n}].{name} is missing")))
    };
    let (id, role) = (needed("id")?, needed("role")?);
    let role = match role {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        "reasoning" => Role::Reasoning,
        "system" => Role::System,
        "developer" => Role::Developer,
        "activity" => return Ok(None),
        other => {
            return Err(ApiError::invalid(format!(
                "messages[{n}].role must be user, assistant, tool, reasoning, system, developer or activity, not {other:?}"
            )));
        }
    };
    let (content, not_text) = match fields.get("content") {
        None | Some(Value::Null) => (None, None),
        Some(Value::String(text)) => (Some(text.clone()), None),
        Some(Value::Array(parts)) => parts_text(n, parts)?,
        Some(other) => return Err(wrong(&format!("messages[{n}].content"), "a string or an array", other)),
    };
    let calls = array(fields, "toolCalls").map_err(at)?.unwrap_or_default();
    Ok(Some(Sent {
        message: Message {
            id: id.to_owned(),
            role,
            content,
            tool_calls: calls
                .iter()
                .enumerate()
                .map(|(call, value)| tool_call(n, call, value))
                .collect::<Answer<_>>()?,
            tool_call_id: text(fields, "toolCallId").map_err(at)?.map(str::to_owned),
            error: text(fields, "error").map_err(at)?.map(str::to_owned),
        },
        not_text,
    }))
}

fn parts_text(n: usize, parts: &[Value]) -> Answer<(Option<String>, Option<String>)> {
    let mut said = String::new();
    let mut not_text = None;
    for (m, part) in parts.iter().enumerate() {
        let kind = part.get("type").and_then(Value::as_str);
        let words = part.get("text").or_else(|| part.get("content")).and_then(Value::as_str);
        match (kind, words) {
            (Some("text"), Some(words)) => said.push_str(words),
            (Some("text"), None) => {
                return Err(ApiError::invalid(format!("messages[{n}].content[{m}].text must be a string")));
            }
            (Some(kind), _) => {
                not_text.get_or_insert_with(|| format!("messages[{n}].content[{m}] of type {kind:?}"));
            }
            (None, _) => {
                return Err(ApiError::invalid(format!("messages[{n}].content[{m}].type is missing")));
            }
        }
    }
    Ok((Some(said), not_text))
}

fn tool_call(n: usize, call: usize, value: &Value) -> Answer<ToolCall> {
    let field = |path: &[&str]| {
        let found = path.iter().try_fold(value, |value, name| value.get(name));
        found.and_then(Value::as_str).map(str::to_owned).ok_or_else(|| {
            ApiError::invalid(format!("messages[{n}].toolCalls[{call}].{} must be a string", path.join(".")))
        })
    };
    Ok(ToolCall {
        id: field(&["id"])?,
        kind: "function".to_owned(),
        function: FunctionCall {
            name: field(&["function", "name"])?,
            arguments: field(&["function", "arguments"])?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(value: &Value) -> Answer<Input> {
        Input::parse(value.to_string().as_bytes())
    }

    fn body() -> Value {
        json!({
            "threadId": "t", "runId": "r", "state": {}, "tools": [], "context": [],
            "messages": [{"id": "m1", "role": "user", "content": "do it"}],
            "forwardedProps": {"agent": "demo", "model": "m", "onDisconnect": "cancel", "own": 1},
        })
    }

    #[test]
    fn a_whole_request() {
        let input = parse(&body()).expect("valid");
        assert_eq!((input.thread_id.as_str(), input.run_id.as_deref()), ("t", Some("r")));
        assert_eq!((input.agent.as_deref(), input.model.as_deref()), (Some("demo"), Some("m")));
        assert_eq!(input.on_disconnect, Some(OnDisconnect::Cancel));
        assert_eq!(input.messages[0].message, Message::text("m1", Role::User, "do it"));
    }

    #[test]
    fn content_in_parts() {
        let content = json!([{"type": "text", "text": "a"}, {"type": "image", "source": {}}, {"type": "text", "content": "b"}]);
        let input =
            parse(&json!({"threadId": "t", "messages": [{"id": "m", "role": "user", "content": content}]}));
        let sent = &input.expect("valid").messages[0];
        assert_eq!(sent.message.content.as_deref(), Some("ab"));
        assert_eq!(sent.not_text.as_deref(), Some("messages[0].content[1] of type \"image\""));
    }

    #[test]
    fn the_same_request_is_known_whatever_its_keys_order_and_wherever_its_run_id_is() {
        let digest = |value: &Value| parse(value).expect("valid").digest;
        let mut other = body();
        other.as_object_mut().expect("object").remove("runId");
        assert_eq!(digest(&body()), digest(&other));
        other["messages"][0]["content"] = json!("do something else");
        assert_ne!(digest(&body()), digest(&other));
    }

    #[test]
    fn mistakes_name_the_field() {
        for (change, says) in [
            (json!({"threadId": null}), "threadId is missing"),
            (json!({"threadId": 5}), "threadId must be a string, not a number"),
            (json!({"threadId": ""}), "a thread id must not be empty"),
            (json!({"messages": null}), "messages is missing"),
            (json!({"messages": {}}), "messages must be an array, not an object"),
            (json!({"messages": ["x"]}), "messages[0] must be an object, not a string"),
            (json!({"messages": [{"role": "user"}]}), "messages[0].id is missing"),
            (json!({"messages": [{"id": "m", "role": "boss"}]}), "messages[0].role must be user"),
            (json!({"messages": [{"id": "m", "role": "user", "content": 1}]}), "messages[0].content must be"),
            (
                json!({"messages": [{"id": "m", "role": "user", "content": [{}]}]}),
                "messages[0].content[0].type",
            ),
            (
                json!({"messages": [{"id": "m", "role": "assistant", "toolCalls": [{"id": 1}]}]}),
                "toolCalls[0].id",
            ),
            (json!({"tools": {}}), "tools must be an array"),
            (json!({"forwardedProps": []}), "forwardedProps must be an object"),
            (json!({"forwardedProps": {"agent": 1}}), "forwardedProps.agent must be a string"),
            (json!({"forwardedProps": {"onDisconnect": "die"}}), "\"detach\" or \"cancel\""),
        ] {
            let mut value = body();
            value.as_object_mut().expect("object").extend(change.as_object().expect("object").clone());
            let error = parse(&value).expect_err("wrong");
            assert!(error.message.contains(says), "{change}: {}", error.message);
        }
        assert!(Input::parse(b"{").expect_err("no JSON").message.contains("not JSON"));
        assert!(Input::parse(b"[]").expect_err("no object").message.contains("object"));
    }

    #[test]
    fn unusual_messages() {
        let value = json!({"threadId": "t", "messages": [
            {"id": "a", "role": "activity", "content": {}, "activityType": "PLAN"},
            {"id": "b", "role": "assistant", "toolCalls": [
                {"id": "c", "type": "function", "function": {"name": "n", "arguments": "{}"}}]},
            {"id": "d", "role": "tool", "toolCallId": "c", "content": "out", "error": "bad"},
        ]});
        let input = parse(&value).expect("valid");
        assert_eq!(input.messages.len(), 2);
        assert_eq!(input.messages[0].message.tool_calls[0].function.name, "n");
        assert_eq!(input.messages[1].message.error.as_deref(), Some("bad"));
    }
}
