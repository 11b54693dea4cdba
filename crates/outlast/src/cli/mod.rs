//! The command line.

mod again;
mod args;
mod commands;
mod context;
mod failure;
mod main;
mod render;
mod signals;
#[cfg(feature = "failpoints")]
mod testing;

pub use main::main;
