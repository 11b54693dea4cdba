//! What the model says. It depends on nothing but the conversation.

/// One contribution to a conversation, in the words of neither dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// By the person, or by the program in their name.
    User(String),
    /// By the model.
    Model(String),
    /// By a tool.
    Tool(String),
}

impl Said {
    /// What was said, by whomever.
    pub fn text(&self) -> &str {
        match self {
            Said::User(text) | Said::Model(text) | Said::Tool(text) => text,
        }
    }
}

/// What the model says next: a text, and the command that it wants to be run, if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub text: String,
    pub shell: Option<String>,
}

/// What the model says before it calls a tool.
pub const LOOKING: &str = "I will run a command first.";

/// What it says once the tool has answered.
pub const DONE: &str = "All done.";

/// What it says to a prompt that asks for no command: the prompt's last line comes back.
pub fn answer(prompt: &str) -> String {
    format!("You said: {}", last_line(prompt))
}

/// A prompt whose last line is `RUN command` has the command run and then done; any other is only answered.
pub fn next(conversation: &[Said]) -> Turn {
    let asked = conversation.iter().rposition(|said| matches!(said, Said::User(_)));
    let prompt = asked.map_or("", |asked| conversation[asked].text());
    let since = asked.map_or(conversation, |asked| &conversation[asked..]);
    let answered = since.iter().any(|said| matches!(said, Said::Tool(_)));
    match last_line(prompt).strip_prefix("RUN ") {
        Some(_) if answered => Turn { text: DONE.to_owned(), shell: None },
        Some(command) => Turn { text: LOOKING.to_owned(), shell: Some(command.to_owned()) },
        None => Turn { text: answer(prompt), shell: None },
    }
}

fn last_line(prompt: &str) -> &str {
    prompt.trim().lines().last().unwrap_or_default().trim()
}
