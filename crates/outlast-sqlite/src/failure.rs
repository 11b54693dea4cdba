//! From what SQLite says to what a caller can do about it.

use std::path::Path;

use outlast_store::StoreError;
use rusqlite::ErrorCode;

/// Why a transaction could not be carried out.
#[derive(Debug)]
pub(crate) enum Failure {
    /// SQLite said so.
    Sql(rusqlite::Error),
    /// A row holds what no version of Outlast has written.
    Damaged(String),
}

/// The outcome of statements. A refusal by a decision is no failure: it is inside the value.
pub(crate) type Tried<T> = Result<T, Failure>;

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Failure::Sql(error)
    }
}

impl Failure {
    /// What the caller is told. `file` is the database.
    pub(crate) fn told(&self, file: &Path) -> StoreError {
        let file = file.display();
        match self {
            Failure::Sql(error) => match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => unavailable(format!(
                    "the database {file} is locked by another process; it goes on when that process lets go"
                )),
                Some(ErrorCode::DiskFull) => unavailable(format!(
                    "there is no space left for {file} ({error}); it goes on when there is room"
                )),
                Some(
                    ErrorCode::SystemIoFailure
                    | ErrorCode::CannotOpen
                    | ErrorCode::ReadOnly
                    | ErrorCode::PermissionDenied
                    | ErrorCode::OutOfMemory
                    | ErrorCode::FileLockingProtocolFailed
                    | ErrorCode::OperationInterrupted
                    | ErrorCode::SchemaChanged,
                ) => {
                    let code = error.sqlite_error().map_or(0, |error| error.extended_code);
                    unavailable(format!("cannot read or write {file}: {error} (SQLite's code {code})"))
                }
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => damaged(&file, error),
                _ => defect(format!("a statement on {file} failed: {error}")),
            },
            Failure::Damaged(what) => damaged(&file, what),
        }
    }
}

fn damaged(file: &dyn std::fmt::Display, what: &dyn std::fmt::Display) -> StoreError {
    StoreError::Unusable {
        message: format!(
            "the database {file} is damaged ({what}). Stop all outlast processes, then restore {file} from a backup, \
             or move it aside together with {file}-wal and {file}-shm to start with an empty one. The agents' \
             journals (in sandboxes/ beside it) are not touched by that"
        ),
    }
}

pub(crate) fn unavailable(message: impl Into<String>) -> StoreError {
    StoreError::Unavailable { message: message.into() }
}

/// A request that Outlast itself should never make: repeating it is useless.
pub(crate) fn defect(what: impl std::fmt::Display) -> StoreError {
    StoreError::Unusable { message: format!("internal error: {what}") }
}
