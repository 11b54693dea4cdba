//! `outlast.toml`: agents, sandboxes and times.

mod check;
mod file;
mod units;

pub use file::{AgentConfig, Config, ConfigError, SandboxConfig, Stdin};
pub use units::{Limit, parse_bytes, parse_duration, parse_limit, show_duration};
