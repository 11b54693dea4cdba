//! What the built-in kinds of agents make of what real agents print.

mod captures;
mod checks;
mod claude;
mod codex;
mod command;
mod launch;
mod support;
mod takeover;
