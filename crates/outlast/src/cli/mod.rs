//! The command line.

#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "they panic where a terminal is gone: use `say`"
)]

mod again;
mod args;
mod commands;
mod context;
mod failure;
mod main;
mod render;
mod say;
mod signals;
#[cfg(feature = "failpoints")]
mod testing;

pub use main::main;
