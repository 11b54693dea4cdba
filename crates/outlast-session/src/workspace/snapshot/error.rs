//! Why there is no snapshot.

use std::path::PathBuf;

use crate::objects::ObjectsError;
use crate::workspace::ManifestError;

/// A snapshot failed. Objects may have been written, that nothing refers to.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The root is no directory, or cannot be read.
    #[error("cannot read the workspace {root:?}: {message}")]
    Root {
        /// The root.
        root: PathBuf,
        /// What is wrong, for people.
        message: String,
    },
    /// The workspace would contain what its snapshots are kept in.
    #[error("{inside:?} lies within the workspace {root:?}: keep it elsewhere")]
    Overlap {
        /// The root.
        root: PathBuf,
        /// The object storage or the cache.
        inside: PathBuf,
    },
    /// Patterns cannot be understood or read. Without them, something might be stored that is not to be.
    #[error("cannot use the patterns of {place}: {message}")]
    Patterns {
        /// The option, or the file within the workspace.
        place: String,
        /// What is wrong, for people.
        message: String,
    },
    /// The tree is larger than the options allow.
    #[error("the workspace has more than {max} {what}")]
    TooLarge {
        /// Of what: `entries`, `bytes`.
        what: &'static str,
        /// How many are allowed.
        max: u64,
    },
    /// The tree cannot be written down.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Object storage failed.
    #[error("cannot store the snapshot: {0}")]
    Objects(#[from] ObjectsError),
    /// Something in this program failed.
    #[error("cannot make the snapshot: {message}")]
    Internal {
        /// What, for people.
        message: String,
    },
}
