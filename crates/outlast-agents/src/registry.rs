//! The kinds of agents that Outlast knows by itself.

use crate::Agent;
use crate::claude_code::ClaudeCode;
use crate::codex::Codex;
use crate::command::Command;

/// The names of the kinds, as in `kind = "…"` of the configuration.
pub const KINDS: &[&str] = &["command", "claude-code", "codex"];

/// The kind of this name.
pub fn agent(kind: &str) -> Option<&'static dyn Agent> {
    match kind {
        "command" => Some(&Command),
        "claude-code" => Some(&ClaudeCode),
        "codex" => Some(&Codex),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name() {
        for kind in KINDS {
            assert_eq!(agent(kind).map(Agent::kind), Some(*kind));
        }
        assert!(agent("Codex").is_none());
    }
}
