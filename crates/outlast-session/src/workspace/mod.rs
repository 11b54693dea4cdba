//! Snapshots of workspaces: content-addressed, incremental, restorable, collected. Knows nothing of the database.

mod content;
mod digest;
mod engine;
mod files;
mod gc;
mod keys;
mod manifest;
mod read;
mod restore;
mod snapshot;
mod threads;

pub use content::{MAX_CHUNK_BYTES, SINGLE_CHUNK_BYTES};
pub use digest::Digest;
pub use engine::Workspaces;
pub use gc::{GcInput, GcReport, WorkspaceGcError};
pub use manifest::{
    Entry, EntryKind, MAX_ENTRIES, MAX_MANIFEST_BYTES, MAX_PATH_BYTES, MAX_TOTAL_BYTES, Manifest,
    ManifestError, ManifestFault, ManifestSummary, escape,
};
pub use read::WorkspaceReadError;
pub use restore::{RestoreError, RestoreMode, RestoreOptions, Restored};
pub use snapshot::{
    Progress, ProgressFn, SECRETS, SkipReason, Skipped, Snapshot, SnapshotError, SnapshotOptions,
};
