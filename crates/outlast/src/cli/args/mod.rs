//! What can be typed.

mod cli;
mod sessions;

pub use cli::*;
pub use sessions::{RestoreArgs, RestoreModeArg, SessionCommand, WorkspaceCommand};
