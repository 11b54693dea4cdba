//! The real Claude Code and Codex, driven against a scripted model on this machine.

mod endpoint;
mod failed;
mod runs;
mod secrets;
mod stage;
mod threads;

/// Makes a test of each function for each program: `claude_code::NAME` and `codex::NAME`.
macro_rules! for_each_program {
    ($($name:ident),+ $(,)?) => {
        mod claude_code {
            $(#[test] fn $name() { super::$name($crate::real_agents::stage::Program::ClaudeCode) })+
        }
        mod codex {
            $(#[test] fn $name() { super::$name($crate::real_agents::stage::Program::Codex) })+
        }
    };
}
use for_each_program;
