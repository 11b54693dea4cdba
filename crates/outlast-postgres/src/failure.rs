//! From what PostgreSQL says to what a caller can do about it.

use std::error::Error as _;

use deadpool_postgres::{HookError, PoolError};
use outlast_store::StoreError;
use tokio_postgres::error::SqlState;

/// Why a transaction could not be carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// PostgreSQL, or the way to it.
    #[error("{}", words(.0))]
    Sql(#[from] tokio_postgres::Error),
    /// No connection.
    #[error("{}", pool_words(.0))]
    Pool(#[from] PoolError),
    /// A row holds what no version of Outlast has written.
    #[error("{0}")]
    Damaged(String),
    /// The database is not one that Outlast works with.
    #[error("{0}")]
    Unsuitable(String),
}

/// The outcome of statements. A refusal by a decision is no failure: it is inside the value.
pub(crate) type Tried<T> = Result<T, Failure>;

/// What can be done about a failure.
enum Kind {
    /// It may pass.
    Passing,
    /// Somebody has to change something: a privilege, a setting, a password.
    Refused,
    /// The server is not whom it should be, or does not speak as it should.
    Tls,
    /// Outlast is wrong.
    Defect,
}

/// The message with its cause and code; the error's own text is only the kind.
fn words(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => format!("{} (SQLSTATE {})", db.message(), db.code().code()),
        None => match error.source() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    }
}

fn pool_words(error: &PoolError) -> String {
    match error {
        PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => words(error),
        PoolError::Timeout(_) => "no connection within 5 seconds".to_owned(),
        other => other.to_string(),
    }
}

impl Failure {
    fn sql(&self) -> Option<&tokio_postgres::Error> {
        match self {
            Failure::Sql(error)
            | Failure::Pool(
                PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)),
            ) => Some(error),
            _ => None,
        }
    }

    fn state(&self) -> Option<&SqlState> {
        self.sql().and_then(tokio_postgres::Error::code)
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

    /// Whether the statement gave up waiting for what somebody else has locked.
    pub(crate) fn found_it_locked(&self) -> bool {
        self.state() == Some(&SqlState::LOCK_NOT_AVAILABLE)
    }

    fn kind(&self) -> Kind {
        let Some(error) = self.sql() else {
            return Kind::Passing;
        };
        let Some(state) = error.code() else {
            return match error.to_string().as_str() {
                "error performing TLS handshake" if tls_was_refused(error) => Kind::Tls,
                // A password that is asked for and not given, or another way to prove who one is.
                "invalid configuration" | "authentication error" => Kind::Refused,
                _ => Kind::Passing,
            };
        };
        match state.code() {
            // PgBouncer says everything with one code, and most of it passes.
            "08P01" if words(error).starts_with("unsupported startup parameter") => Kind::Refused,
            // No privilege; a connection whose prepared statements are not its own.
            "42501" | "26000" | "42P05" => Kind::Refused,
            code => match code.get(..2).unwrap_or_default() {
                // No such user, wrong password, no such database, no such schema.
                "28" | "3D" | "3F" => Kind::Refused,
                // Syntax and missing objects; data that does not fit; a constraint. Nothing of these goes away.
                "42" | "22" | "23" | "0A" => Kind::Defect,
                // Everything else is the connection, the load, the disk, a shutdown, a standby.
                _ => Kind::Passing,
            },
        }
    }

    /// What the caller is told.
    pub(crate) fn told(&self) -> StoreError {
        self.told_of("PostgreSQL")
    }

    /// What the caller is told, with the name of the database.
    pub(crate) fn told_of(&self, database: &str) -> StoreError {
        let unusable = |message: String| StoreError::Unusable { message };
        match self {
            Failure::Damaged(what) => {
                unusable(format!("{database} is damaged ({what}): restore it from a backup"))
            }
            Failure::Unsuitable(what) => unusable(format!("{database}: {what}")),
            _ => match self.kind() {
                Kind::Passing => unavailable(format!("{database}: {self}")),
                Kind::Defect => defect(self),
                Kind::Refused => unusable(format!("{database} refuses: {self}{}", self.hint())),
                Kind::Tls => unusable(format!(
                    "{database}: {self}: the server's certificate must bear the name of the host, and sslrootcert=FILE name it \
                     or the authority that signed it; sslmode=prefer encrypts without looking at it"
                )),
            },
        }
    }

    fn hint(&self) -> &'static str {
        match self.state().map(SqlState::code) {
            Some("08P01") => "; set it with ALTER ROLE, and leave it out of the URL",
            Some("42501") => "; it needs CREATE on its schema, and to own the tables there",
            Some("26000" | "42P05") => {
                "; a pooler in between must pool sessions, or keep prepared statements (max_prepared_statements)"
            }
            _ => "",
        }
    }
}

/// Whether the handshake failed for what the server is, and not for a connection that broke.
fn tls_was_refused(error: &tokio_postgres::Error) -> bool {
    let Some(cause) = error.source() else {
        return false;
    };
    match cause.downcast_ref::<std::io::Error>() {
        Some(io) => io.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()),
        // It has no TLS, or no name by which its certificate could be looked at.
        None => true,
    }
}

pub(crate) fn unavailable(message: impl Into<String>) -> StoreError {
    StoreError::Unavailable { message: message.into() }
}

/// A request that Outlast itself should never make: repeating it is useless.
pub(crate) fn defect(what: impl std::fmt::Display) -> StoreError {
    StoreError::Unusable { message: format!("internal error: {what}") }
}
