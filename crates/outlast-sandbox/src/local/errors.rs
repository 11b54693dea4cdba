//! Errors of the local provider.

use crate::ProviderError;

/// The provider's name.
pub(super) const NAME: &str = "local";

/// An error with a message for people.
pub(super) fn failed(message: impl Into<String>) -> ProviderError {
    ProviderError { provider: NAME, message: message.into() }
}

/// Turns an I/O error into one that says what was attempted.
pub(super) trait Attempting<T> {
    /// Adds what was attempted.
    fn attempting(self, what: impl FnOnce() -> String) -> Result<T, ProviderError>;
}

impl<T, E: std::fmt::Display> Attempting<T> for Result<T, E> {
    fn attempting(self, what: impl FnOnce() -> String) -> Result<T, ProviderError> {
        self.map_err(|error| failed(format!("{}: {error}", what())))
    }
}
