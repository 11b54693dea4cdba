//! Deleting what nothing refers to.

mod collect;
mod decide;
mod error;
mod report;

pub use error::WorkspaceGcError;
pub use report::{GcInput, GcReport};
