//! Claude Code, through `claude -p --output-format stream-json`.

mod agent;
mod launch;
mod line;
mod result;
mod state;
mod stream;
mod subagent;
mod translator;

pub use agent::ClaudeCode;
