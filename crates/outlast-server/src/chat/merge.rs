//! Which of the messages that a client sent are new to the thread.

use std::collections::HashSet;

use outlast_core::transcript::{Message, Role};

use super::input::Sent;
use crate::error::{Answer, ApiError};

/// What a request adds to its thread.
#[derive(Debug, PartialEq)]
pub(super) struct Turn {
    /// The messages that the store does not have yet, in order.
    pub new: Vec<Message>,
    /// What the agent is asked: the last thing that the user said.
    pub prompt: String,
}

/// Merges by id, and the stored message wins. Clients send the whole conversation with every turn, in a form of their
/// own: one message of theirs may stand for several stored ones, tool results and reasoning come under ids that the
/// client made up, and all that was thought on the way to one text is one piece. So what belongs to a message or a call
/// that is stored is known too, and so are thoughts that were thought one after the other.
pub(super) fn turn(stored: &[Message], sent: Vec<Sent>) -> Answer<Turn> {
    let ids: HashSet<&str> = stored.iter().map(|message| message.id.as_str()).collect();
    let calls: HashSet<&str> = stored
        .iter()
        .flat_map(|message| {
            message.tool_calls.iter().map(|call| call.id.as_str()).chain(message.tool_call_id.as_deref())
        })
        .collect();
    let thoughts: String = stored
        .iter()
        .filter(|message| message.role == Role::Reasoning)
        .filter_map(|message| message.content.as_deref())
        .collect();
    let known = |message: &Message| match message.role {
        _ if ids.contains(message.id.as_str()) => true,
        Role::Tool => message.tool_call_id.as_deref().is_some_and(|call| calls.contains(call)),
        Role::Assistant => {
            let empty =
                message.content.as_deref().unwrap_or_default().is_empty() && message.tool_calls.is_empty();
            empty || message.tool_calls.iter().any(|call| calls.contains(call.id.as_str()))
        }
        Role::Reasoning => {
            message.id.rsplit_once("-reasoning").is_some_and(|(of, _)| ids.contains(of))
                || thoughts.contains(message.content.as_deref().unwrap_or_default())
        }
        Role::User | Role::System | Role::Developer => false,
    };
    let Some(asked) = sent.iter().rfind(|sent| sent.message.role == Role::User) else {
        return Err(ApiError::invalid("messages holds no message of the user: there is nothing to do"));
    };
    let mut of_that_id = stored.iter().chain(sent.iter().map(|sent| &sent.message));
    let first = of_that_id.find(|message| message.id == asked.message.id).unwrap_or(&asked.message);
    let prompt = first.content.clone().unwrap_or_default();
    let mut new: Vec<Message> = Vec::new();
    for Sent { message, not_text } in sent {
        if known(&message) || new.iter().any(|other| other.id == message.id) {
            continue;
        }
        if let Some(what) = not_text {
            return Err(ApiError::invalid(format!("{what} is not supported: agents are given text")));
        }
        new.push(message);
    }
    Ok(Turn { new, prompt })
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_core::transcript::{FunctionCall, ToolCall};

    fn say(id: &str, role: Role, text: &str) -> Message {
        Message::text(id, role, text)
    }

    fn calling(id: &str, text: Option<&str>, call: &str) -> Message {
        let function = FunctionCall { name: "Bash".into(), arguments: "{}".into() };
        let tool_calls = vec![ToolCall { id: call.into(), kind: "function".into(), function }];
        Message { content: text.map(str::to_owned), tool_calls, ..say(id, Role::Assistant, "") }
    }

    fn result(id: &str, call: &str) -> Message {
        Message { tool_call_id: Some(call.into()), ..say(id, Role::Tool, "out") }
    }

    fn sent(messages: &[Message]) -> Vec<Sent> {
        messages.iter().map(|message| Sent { message: message.clone(), not_text: None }).collect()
    }

    fn ids(turn: &Turn) -> Vec<&str> {
        turn.new.iter().map(|message| message.id.as_str()).collect()
    }

    /// What the published client sends for the second turn of a thread.
    #[test]
    fn a_second_turn_adds_only_what_the_user_said() {
        let stored = [
            say("u1", Role::User, "one"),
            say("r1-1", Role::Reasoning, "hm"),
            say("r1-2", Role::Assistant, "I look."),
            calling("r1-3", None, "r1-4"),
            result("r1-5", "r1-4"),
            say("r1-6", Role::Assistant, "Done."),
        ];
        let client = sent(&[
            say("u1", Role::User, "one"),
            say("r1-2-reasoning-0", Role::Reasoning, "hm"),
            calling("r1-2", Some("I look."), "r1-4"),
            result("tool-r1-4", "r1-4"),
            say("r1-6", Role::Assistant, "Done."),
            calling("msg-made-up", None, "r1-4"),
            say("msg-empty", Role::Assistant, ""),
            say("u2", Role::User, "two"),
        ]);
        let turn = turn(&stored, client).expect("valid");
        assert_eq!(ids(&turn), ["u2"]);
        assert_eq!(turn.prompt, "two");
    }

    /// A run that never came to a text: the client's message for it has an id of the client's own.
    #[test]
    fn thoughts_are_known_however_they_are_put_together() {
        let stored = [
            say("u1", Role::User, "one"),
            say("r1-1", Role::Reasoning, "hm, "),
            calling("r1-3", None, "r1-4"),
            result("r1-5", "r1-4"),
            say("r1-6", Role::Reasoning, "so"),
        ];
        let client = |thought: &str| {
            sent(&[
                say("u1", Role::User, "one"),
                say("msg-made-up-reasoning-0", Role::Reasoning, thought),
                calling("msg-made-up", None, "r1-4"),
                result("tool-r1-4", "r1-4"),
                say("u2", Role::User, "two"),
            ])
        };
        for thought in ["hm, so", "hm, ", "so", "hm"] {
            assert_eq!(ids(&turn(&stored, client(thought)).expect("valid")), ["u2"], "{thought:?}");
        }
        let other = turn(&stored, client("something else")).expect("valid");
        assert_eq!(ids(&other), ["msg-made-up-reasoning-0", "u2"]);
    }

    #[test]
    fn the_stored_message_wins() {
        let stored = [say("u1", Role::User, "as stored")];
        let turn = turn(&stored, sent(&[say("u1", Role::User, "as changed since")])).expect("valid");
        assert_eq!(turn, Turn { new: Vec::new(), prompt: "as stored".into() });
    }

    #[test]
    fn a_history_from_elsewhere_is_taken_over_in_order_and_once() {
        let history = [
            say("s", Role::System, "be brief"),
            say("u1", Role::User, "one"),
            calling("a1", Some("I look."), "c1"),
            result("x1", "c1"),
            say("u2", Role::User, "two"),
            say("u2", Role::User, "two, again"),
        ];
        let turn = turn(&[], sent(&history)).expect("valid");
        assert_eq!(ids(&turn), ["s", "u1", "a1", "x1", "u2"]);
        assert_eq!(turn.prompt, "two");
    }

    #[test]
    fn refusals() {
        assert!(turn(&[], sent(&[say("a", Role::Assistant, "hello")])).is_err());
        assert!(turn(&[], Vec::new()).is_err());
        let picture =
            |id: &str| Sent { message: say(id, Role::User, "look"), not_text: Some("messages[0]".into()) };
        assert!(turn(&[], vec![picture("u1")]).expect_err("a picture").message.contains("not supported"));
        let stored = [say("u1", Role::User, "look")];
        assert!(turn(&stored, vec![picture("u1")]).is_ok(), "what is stored is not looked at again");
    }
}
