//! From a directory to objects.

mod cache;
mod error;
mod exclude;
mod hashing;
mod options;
mod prepare;
mod result;
mod run;
mod secrets;
mod state;
mod upload;

pub use error::SnapshotError;
pub(super) use exclude::{Excludes, Nested};
pub use options::{Progress, ProgressFn, SnapshotOptions};
pub use result::{SkipReason, Skipped, Snapshot};
pub use secrets::SECRETS;
