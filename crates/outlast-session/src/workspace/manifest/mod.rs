//! What a snapshot consists of.

mod check;
mod model;
mod path;
mod summary;
mod text;

pub(super) use check::check_path;
pub use check::{
    MAX_ENTRIES, MAX_MANIFEST_BYTES, MAX_PATH_BYTES, MAX_TOTAL_BYTES, ManifestError, ManifestFault,
};
pub use model::{Entry, EntryKind, Manifest};
pub use path::escape;
pub(super) use path::parts;
pub use summary::ManifestSummary;
