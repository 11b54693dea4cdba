//! What is done for sessions without anybody asking: bodies are collected, activity ends, deletions are finished.

mod activity;
mod all;
mod delete;
mod endings;
mod workspaces;

pub use activity::{Activity, ActivityError};
pub use all::{CollectError, Collected, UpkeepOptions, UpkeepResult};
pub use delete::{DeleteSessionError, DeletedIdle, DeletedSession};
pub use workspaces::{CollectWorkspacesError, WorkspaceGcOptions};
