//! Messages, in AG-UI's form.

use serde::{Deserialize, Serialize};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person, or the program in their place.
    User,
    /// The agent.
    Assistant,
    /// A tool's result.
    Tool,
    /// What the agent thought.
    Reasoning,
    /// An instruction of whoever runs the service.
    System,
    /// The same, in newer words.
    Developer,
}

impl Role {
    /// The printed form.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
            Role::Reasoning => "reasoning",
            Role::System => "system",
            Role::Developer => "developer",
        }
    }
}

/// One message of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Its id, as streamed.
    pub id: String,
    /// Who speaks.
    pub role: Role,
    /// What is said. None for an assistant's message that only calls tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The tools that an assistant's message calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The call that a tool's message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Set where a tool failed, or never answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Message {
    /// A message that says something.
    pub fn text(id: impl Into<String>, role: Role, content: impl Into<String>) -> Self {
        Message {
            id: id.into(),
            role,
            content: Some(content.into()),
            tool_calls: Vec::new(),
            tool_call_id: None,
            error: None,
        }
    }
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Its id, as streamed.
    pub id: String,
    /// Always `function`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What is called.
    pub function: FunctionCall,
}

/// A tool's name and its arguments as JSON text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// The tool.
    pub name: String,
    /// JSON, as the agent streamed it.
    pub arguments: String,
}
