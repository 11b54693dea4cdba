//! From what PostgreSQL says to what a caller can do about it.

use deadpool_postgres::PoolError;
use outlast_store::StoreError;
use tokio_postgres::error::SqlState;

/// Why a transaction could not be carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// PostgreSQL, or the way to it.
    #[error("{}", words(.0))]
    Sql(#[from] tokio_postgres::Error),
    /// No connection.
    #[error("no connection: {0}")]
    Pool(#[from] PoolError),
    /// A row holds what no version of Outlast has written.
    #[error("{0}")]
    Damaged(String),
}

/// The outcome of statements. A refusal by a decision is no failure: it is inside the value.
pub(crate) type Tried<T> = Result<T, Failure>;

/// The message with its cause and code; the error's own text is only the kind.
fn words(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => format!("{} (SQLSTATE {})", db.message(), db.code().code()),
        None => match std::error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    }
}

impl Failure {
    fn state(&self) -> Option<&SqlState> {
        match self {
            Failure::Sql(error) | Failure::Pool(PoolError::Backend(error)) => error.code(),
            _ => None,
        }
    }

    /// Whether the same transaction may succeed if it is tried again at once: it lost a race.
    pub(crate) fn lost_a_race(&self) -> bool {
        self.state().is_some_and(|state| {
            [
                SqlState::T_R_SERIALIZATION_FAILURE,
                SqlState::T_R_DEADLOCK_DETECTED,
                // Of two that insert the same, one finds the other's row when it looks again.
                SqlState::UNIQUE_VIOLATION,
            ]
            .contains(state)
        })
    }

    /// What the caller is told.
    pub(crate) fn told(&self) -> StoreError {
        if let Failure::Damaged(what) = self {
            return StoreError::Unusable {
                message: format!("the database is damaged ({what}): restore it from a backup"),
            };
        }
        let class = self.state().map(|state| state.code().get(..2).unwrap_or_default().to_owned());
        match class.as_deref() {
            // Syntax, privileges and missing objects; data that does not fit; a constraint. Nothing of these goes away.
            Some("42" | "22" | "23" | "0A") => defect(self),
            // No such user, wrong password, no such database.
            Some("28" | "3D") => StoreError::Unusable { message: format!("PostgreSQL refuses: {self}") },
            // Everything else is the connection, the load, the disk, a shutdown, a standby: it may pass.
            _ => unavailable(format!("PostgreSQL is not available ({self}); it goes on when it is back")),
        }
    }
}

pub(crate) fn unavailable(message: impl Into<String>) -> StoreError {
    StoreError::Unavailable { message: message.into() }
}

/// A request that Outlast itself should never make: repeating it is useless.
pub(crate) fn defect(what: impl std::fmt::Display) -> StoreError {
    StoreError::Unusable { message: format!("internal error: {what}") }
}
