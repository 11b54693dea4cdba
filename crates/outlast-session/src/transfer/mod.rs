//! A session as one file: its backup, and its way to another deployment.

mod export;
mod file;
mod import;

pub use export::{ExportError, ExportOptions, Exported};
pub use file::{FileError, FileReader, Header, Trailer};
pub use import::{ImportError, ImportOptions, Imported};
