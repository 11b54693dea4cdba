//! Errors for people, and exit statuses.

use std::fmt::Display;
use std::process::ExitCode;

use outlast_core::ErrorCode;
use serde_json::json;

use super::render::printable_text;
use crate::cli::say::tell;

/// Why a command failed.
#[derive(Debug)]
pub struct Failure {
    /// The stable code.
    pub code: ErrorCode,
    /// What is wrong and what to do.
    pub message: String,
    /// The exit status.
    pub status: u8,
}

/// Wrong usage.
pub const USAGE: u8 = 2;
/// A command other than `run` and `attach` failed.
pub const FAILED: u8 = 1;
/// Outlast itself could not go on with `run` or `attach`; told apart from an agent's own status as `docker run` does.
pub const OWN: u8 = 125;

impl Failure {
    pub fn new(code: ErrorCode, message: impl Display) -> Self {
        Failure { code, message: message.to_string(), status: FAILED }
    }

    pub fn usage(message: impl Display) -> Self {
        Failure { status: USAGE, ..Failure::new(ErrorCode::InvalidRequest, message) }
    }

    pub fn not_found(run: impl Display) -> Self {
        Failure::new(
            ErrorCode::RunNotFound,
            format!("there is no run {run:?}; `outlast ps -a` lists them", run = run.to_string()),
        )
    }

    /// The same failure with another exit status, unless it is wrong usage.
    pub fn with_status(mut self, status: u8) -> Self {
        if self.status != USAGE {
            self.status = status;
        }
        self
    }

    /// Tells it on standard error: as text, or as `{"error":{"code","message"}}`.
    pub fn report(&self, json: bool) -> ExitCode {
        if json {
            tell!("{}", json!({"error": {"code": self.code, "message": self.message}}));
        } else {
            tell!("outlast: {}", printable_text(&self.message));
        }
        ExitCode::from(self.status)
    }
}

impl From<outlast_store::StoreError> for Failure {
    fn from(error: outlast_store::StoreError) -> Self {
        Failure::new(error.code(), error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::new(ErrorCode::Internal, error)
    }
}
