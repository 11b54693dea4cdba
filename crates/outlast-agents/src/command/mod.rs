//! Any program as an agent.

mod agent;
mod printed;
mod state;
mod translator;

pub use agent::Command;
