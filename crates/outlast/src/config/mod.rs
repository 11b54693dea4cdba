//! `outlast.toml`: agents, sandboxes, times and the server.

#[cfg(feature = "server")]
mod catalog;
mod check;
mod file;
mod keep;
mod serve;
mod sessions;
mod units;

#[cfg(feature = "server")]
pub use catalog::ConfiguredAgents;
pub use file::{AgentConfig, Config, ConfigError, SandboxConfig, Stdin};
pub use keep::{ReapConfig, RetentionConfig};
pub use serve::ServeConfig;
pub use sessions::SessionsConfig;
pub use units::{Limit, parse_bytes, parse_duration, parse_limit, show_duration};
