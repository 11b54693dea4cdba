//! Why a snapshot was not restored.

use std::path::PathBuf;

use crate::workspace::WorkspaceReadError;

/// A snapshot was not restored, or not wholly. Nothing was deleted; a repetition goes on.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The snapshot cannot be read. The destination is as it was.
    #[error("cannot read the snapshot: {0}")]
    Read(#[from] WorkspaceReadError),
    /// The snapshot is larger than the options allow. The destination is as it was.
    #[error("the snapshot has {found} {what}, and only {max} are allowed")]
    TooLarge {
        /// `entries` or `bytes`.
        what: &'static str,
        /// How many it has, or more than which it has.
        found: u64,
        /// How many are allowed.
        max: u64,
    },
    /// The destination cannot be used. It is as it was.
    #[error("cannot restore into {destination:?}: {message}")]
    Destination {
        /// It.
        destination: PathBuf,
        /// What is wrong, for people, and what to do.
        message: String,
    },
    /// The destination holds the object storage, or lies in it.
    #[error("cannot restore into {destination:?}: the object storage at {store:?} is not apart from it")]
    Overlap {
        /// The destination.
        destination: PathBuf,
        /// The object storage.
        store: PathBuf,
    },
    /// Another restore of the same destination is under way.
    #[error("another restore into {destination:?} is under way")]
    Busy {
        /// The destination.
        destination: PathBuf,
    },
    /// Nothing can be made beside the destination.
    #[error(
        "cannot make {path:?} beside the destination: {message}. The directory above it must be writable, and no other \
         file system; or restore into a directory below, and use that one"
    )]
    Beside {
        /// What was to be made.
        path: PathBuf,
        /// What is wrong, for people.
        message: String,
    },
    /// The destination is a mount point, or something in it is.
    #[error(
        "{path:?} is on another file system than the directory beside the destination: nothing can be moved between \
         them. Restore into a directory below, and use that one"
    )]
    OtherFileSystem {
        /// What could not be moved.
        path: PathBuf,
    },
    /// Something else wrote into the destination meanwhile. What was there before lies aside.
    #[error(
        "{path:?} has appeared while the snapshot was restored: stop what writes there, and restore again"
    )]
    Changed {
        /// What has appeared.
        path: PathBuf,
    },
    /// Something cannot be written.
    #[error("cannot {what} {path:?}: {message}")]
    Write {
        /// `write`, `move`, `read` …
        what: &'static str,
        /// Which path.
        path: PathBuf,
        /// What is wrong, for people.
        message: String,
    },
    /// Something in this program failed.
    #[error("cannot restore the snapshot: {message}")]
    Internal {
        /// What, for people.
        message: String,
    },
}
