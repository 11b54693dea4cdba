//! One error for each operation.

use outlast_core::decide::{
    AcceptRefusal, ClaimRefusal, DeleteRefusal, EndRefusal, Fenced, LeaseRefusal, ReclaimRefusal,
    RecordsRefusal, WriteRefusal,
};
use outlast_core::{ErrorCode, InstanceId, RunId, Seq};

/// The store could not do its work.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Full, locked, slow or away for now. Nothing was written, or it is not known whether something was; the same
    /// operation may succeed later and is safe to repeat.
    #[error("the store is not available: {message}")]
    Unavailable {
        /// What is wrong, for people.
        message: String,
    },
    /// The store is damaged, of a newer version, in use by something else, or refused as unsuitable. Repeating is
    /// useless; the message says which file and what to do.
    #[error("{message}")]
    Unusable {
        /// What is wrong and what to do, for people.
        message: String,
    },
}

impl StoreError {
    /// Whether the same operation may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, StoreError::Unavailable { .. })
    }

    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            StoreError::Unavailable { .. } | StoreError::Unusable { .. } => ErrorCode::StoreUnavailable,
        }
    }
}

/// Of [`crate::Runs::accept`].
#[derive(Debug, Clone, thiserror::Error)]
pub enum AcceptError {
    /// The decision was against it; nothing was written.
    #[error(transparent)]
    Refused(#[from] AcceptRefusal),
    /// Bodies that it points to are to be put again; nothing was written.
    #[error(transparent)]
    Bodies(RecordsRefusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Of [`crate::Runs::claim`].
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClaimError {
    /// The decision was against it; nothing was written.
    #[error(transparent)]
    Refused(#[from] ClaimRefusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Of the fenced writes besides append and finish.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WriteError {
    /// The claim is not current; nothing was written.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Of [`crate::Log::append`] and [`crate::Log::launched`].
#[derive(Debug, Clone, thiserror::Error)]
pub enum AppendError {
    /// The claim is not current; nothing was written.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// The log is not where the writer believes it to be; nothing was written.
    #[error("the log's tail is {actual:?}, not {expected:?}")]
    TailMoved {
        /// What the writer named.
        expected: Seq,
        /// What is so.
        actual: Seq,
    },
    /// Bodies that it points to are to be put again; nothing was written.
    #[error(transparent)]
    Bodies(RecordsRefusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Of [`crate::Log::finish`].
#[derive(Debug, Clone, thiserror::Error)]
pub enum FinishError {
    /// The claim is not current, or the run has ended; nothing was written.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// A cancel is on the record and the end does not take it into account; nothing was written.
    #[error("the run was cancelled meanwhile")]
    Cancelled(outlast_core::run::Cancel),
    /// The log is not where the writer believes it to be; nothing was written.
    #[error("the log's tail is {actual:?}, not {expected:?}")]
    TailMoved {
        /// What the writer named.
        expected: Seq,
        /// What is so.
        actual: Seq,
    },
    /// Bodies that it points to are to be put again; nothing was written.
    #[error(transparent)]
    Bodies(RecordsRefusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Of [`crate::Ledger::append_records`] and the other operations on one session.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RecordsError {
    /// The decision was against it; nothing was written.
    #[error(transparent)]
    Refused(#[from] RecordsRefusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Of [`crate::Ledger::acquire_lease`].
#[derive(Debug, Clone, thiserror::Error)]
pub enum LeaseError {
    /// The decision was against it; nothing was written.
    #[error(transparent)]
    Refused(#[from] LeaseRefusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Of [`crate::Ledger::begin_delete`].
#[derive(Debug, Clone, thiserror::Error)]
pub enum DeleteError {
    /// The decision was against it; nothing was written.
    #[error(transparent)]
    Refused(#[from] DeleteRefusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Of [`crate::Log::read`].
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    /// No such run.
    #[error("there is no run {0:?}")]
    RunNotFound(RunId),
    /// The offset lies beyond the tail.
    #[error("offset {offset:?} lies beyond the tail {tail:?}")]
    OffsetAhead {
        /// What was asked for.
        offset: Seq,
        /// The last event's number.
        tail: Seq,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Of [`crate::Instances::begin_reclaim`].
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReclaimError {
    /// No such instance.
    #[error("there is no instance {0:?}")]
    NotFound(InstanceId),
    /// The decision was against it; nothing was written.
    #[error(transparent)]
    Refused(#[from] ReclaimRefusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Of the operations on instances.
#[derive(Debug, Clone, thiserror::Error)]
pub enum InstanceError {
    /// No such instance.
    #[error("there is no instance {0:?}")]
    NotFound(InstanceId),
    /// The instance is being destroyed and is never used again.
    #[error("instance {0:?} is being destroyed")]
    Destroying(InstanceId),
    /// The claim is not current.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<WriteRefusal> for AppendError {
    fn from(refusal: WriteRefusal) -> Self {
        match refusal {
            WriteRefusal::Fenced(fenced) => fenced.into(),
            WriteRefusal::TailMoved { expected, actual } => AppendError::TailMoved { expected, actual },
        }
    }
}

impl From<EndRefusal> for FinishError {
    fn from(refusal: EndRefusal) -> Self {
        match refusal {
            EndRefusal::Write(WriteRefusal::Fenced(fenced)) => fenced.into(),
            EndRefusal::Write(WriteRefusal::TailMoved { expected, actual }) => {
                FinishError::TailMoved { expected, actual }
            }
            EndRefusal::Cancelled(cancel) => FinishError::Cancelled(cancel),
        }
    }
}
