//! The conversation so far as a prompt, for an agent that does not know it.

use outlast_core::transcript::{Message, Role};

/// The most that is told of the conversation, in bytes: what a model can take in beside the new message. Older messages
/// are left out first.
const MAX_BYTES: usize = 256 * 1024;
/// The most that is told of a tool's result, in characters.
const MAX_RESULT_CHARS: usize = 600;
/// The most that is told of a tool's arguments, in characters.
const MAX_ARGUMENT_CHARS: usize = 300;

/// The prompt of a new session: the conversation so far, if there is one, and the new message.
pub(crate) fn prompt(history: &[Message], message: &str) -> String {
    let mut told: Vec<String> = Vec::new();
    let mut size = 0;
    let mut left_out = false;
    for entry in history.iter().rev().filter_map(entry) {
        size += entry.len();
        if size > MAX_BYTES && !told.is_empty() {
            left_out = true;
            break;
        }
        told.push(entry);
    }
    if told.is_empty() {
        return message.to_owned();
    }
    let mut out = String::from("Conversation so far (you have no other memory of it):\n\n");
    if left_out {
        out.push_str("[Earlier messages are left out.]\n\n");
    }
    for entry in told.iter().rev() {
        out.push_str(entry);
        out.push_str("\n\n");
    }
    out.push_str("End of the conversation so far. The new message:\n\n");
    out.push_str(message);
    out
}

fn entry(message: &Message) -> Option<String> {
    let content = message.content.as_deref().unwrap_or_default().trim();
    let who = match message.role {
        Role::User => "User",
        Role::Assistant => "Assistant",
        Role::System | Role::Developer => "Instructions",
        Role::Tool => {
            let how = if message.error.is_some() { "Tool failed" } else { "Tool result" };
            return Some(format!("{how}: {}", shorten(content, MAX_RESULT_CHARS)));
        }
        Role::Reasoning => return None,
    };
    let mut parts = Vec::new();
    if !content.is_empty() {
        parts.push(content.to_owned());
    }
    for call in &message.tool_calls {
        let arguments = shorten(&call.function.arguments, MAX_ARGUMENT_CHARS);
        parts.push(format!("[called the tool {} with {arguments}]", call.function.name));
    }
    (!parts.is_empty()).then(|| format!("{who}: {}", parts.join("\n")))
}

fn shorten(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((at, _)) => format!("{}… ({} more bytes)", &text[..at], text.len() - at),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use outlast_core::transcript::{FunctionCall, ToolCall};

    use super::*;

    #[test]
    fn roles_calls_and_results_are_told() {
        let call = ToolCall {
            id: "t".into(),
            kind: "function".into(),
            function: FunctionCall { name: "Bash".into(), arguments: r#"{"command":"ls"}"#.into() },
        };
        let mut asked = Message::text("a", Role::Assistant, "Looking.");
        asked.tool_calls.push(call);
        let mut failed = Message::text("r", Role::Tool, "x".repeat(700));
        failed.error = Some("x".into());
        let history = [
            Message::text("u", Role::User, "What is here?"),
            Message::text("t", Role::Reasoning, "secret thoughts"),
            asked,
            failed,
        ];
        let expected = format!(
            "Conversation so far (you have no other memory of it):\n\nUser: What is here?\n\nAssistant: Looking.\n\
             [called the tool Bash with {{\"command\":\"ls\"}}]\n\nTool failed: {}… (100 more bytes)\n\n\
             End of the conversation so far. The new message:\n\nAnd now?",
            "x".repeat(600)
        );
        assert_eq!(prompt(&history, "And now?"), expected);
        assert_eq!(prompt(&[], "And now?"), "And now?");
    }

    #[test]
    fn the_oldest_messages_go_first() {
        let history: Vec<Message> = (0..5)
            .map(|n| Message::text("m", Role::User, format!("{n}{}", "y".repeat(MAX_BYTES / 3))))
            .collect();
        let text = prompt(&history, "new");
        assert!(text.contains("[Earlier messages are left out.]\n\nUser: 3y"), "{}", &text[..200]);
        assert!(text.contains("User: 4y") && text.ends_with("new"));
    }
}
