//! Why a collection stopped.

use outlast_core::WorkspaceRef;

use super::GcReport;
use crate::objects::ObjectsError;
use crate::workspace::WorkspaceReadError;

/// A collection did not come to its end. The next one goes on.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceGcError {
    /// The caller does not hold what lets only one collect at a time. Nothing was done.
    #[error("the collection's lease is not held")]
    NotHeld,
    /// It was held, and is not any more.
    #[error("the collection's lease was lost on the way")]
    Lost {
        /// What was done.
        report: Box<GcReport>,
    },
    /// Far fewer snapshots are live than there should be. Nothing was done.
    #[error(
        "only {found} snapshots are live, where {expected} were before: if that is right, say so, or their objects \
         are kept"
    )]
    LiveSetShrank {
        /// How many there were.
        expected: u64,
        /// How many there are.
        found: u64,
    },
    /// What a live snapshot needs cannot be told. Nothing was done.
    #[error("cannot tell what the live snapshot {reference} needs: {source}")]
    Manifest {
        /// It.
        reference: WorkspaceRef,
        /// What is wrong.
        source: WorkspaceReadError,
    },
    /// The objects cannot be listed. Nothing was done.
    #[error("cannot list the objects: {source}")]
    List {
        /// What is wrong.
        source: ObjectsError,
    },
    /// An object cannot be copied, to put it aside or back.
    #[error("cannot copy {key:?}: {source}")]
    Copy {
        /// Its key.
        key: String,
        /// What is wrong.
        source: ObjectsError,
        /// What was done.
        report: Box<GcReport>,
    },
    /// An object cannot be deleted.
    #[error("cannot delete {key:?}: {source}")]
    Delete {
        /// Its key.
        key: String,
        /// What is wrong.
        source: ObjectsError,
        /// What was done.
        report: Box<GcReport>,
    },
}

impl WorkspaceGcError {
    /// What was done before it stopped; none where nothing was.
    pub fn report(&self) -> Option<&GcReport> {
        match self {
            WorkspaceGcError::Lost { report }
            | WorkspaceGcError::Copy { report, .. }
            | WorkspaceGcError::Delete { report, .. } => Some(report),
            _ => None,
        }
    }
}
