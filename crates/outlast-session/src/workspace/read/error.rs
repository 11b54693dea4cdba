//! Why an object cannot be read.

use crate::objects::ObjectsError;
use crate::workspace::ManifestError;

/// A part of a snapshot cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceReadError {
    /// It is not there, and a collection has not put it aside either.
    #[error("the object {key:?} is missing")]
    Missing {
        /// Its key.
        key: String,
    },
    /// It is there, and not what its name says.
    #[error("the object {key:?} is damaged: {message}")]
    Corrupt {
        /// Its key.
        key: String,
        /// What is wrong, for people.
        message: String,
    },
    /// The manifest is what its name says, and this version cannot use it.
    #[error("the object {key:?} cannot be used: {source}")]
    Manifest {
        /// Its key.
        key: String,
        /// What is wrong.
        source: ManifestError,
    },
    /// Object storage failed.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
    /// Something in this program failed.
    #[error("cannot read {key:?}: {message}")]
    Internal {
        /// The key.
        key: String,
        /// What, for people.
        message: String,
    },
}
