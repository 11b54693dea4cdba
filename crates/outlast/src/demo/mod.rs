//! The built-in demo: a scripted coding agent that needs no key and no network.

mod agent;
mod script;

pub use agent::{DEMO_COMMAND, command, run_if_asked};
