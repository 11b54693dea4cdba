//! Codex, through `codex exec --json`.

mod agent;
mod item;
mod launch;
mod line;
mod state;
mod translator;

pub use agent::Codex;
