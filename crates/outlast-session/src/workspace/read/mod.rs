//! Reading objects, each verified against its name.

mod error;
mod reader;

pub use error::WorkspaceReadError;
pub(super) use reader::Reader;
