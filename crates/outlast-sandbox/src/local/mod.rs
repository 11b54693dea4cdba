//! Sandboxes that are directories on this machine. They separate by accident only: an agent runs as the user who
//! started it, under the strongest fence that the machine grants.

mod config;
mod errors;
mod journal;
mod kill;
mod launch;
mod layout;
mod machine;
mod provider;
mod prune;
mod watch;

pub use config::{LocalConfig, ShimProgram};
pub use provider::LocalProvider;
