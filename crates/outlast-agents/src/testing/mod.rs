//! Checks that every translator must pass, for the tests of those who write one.
//!
//! [`check_translator`] is the one to call; [`translate`] shows what a translator makes of an output, for snapshots.

mod check;
mod run;
mod sequence;

pub use check::check_translator;
pub use run::{Translated, secret, translate};
pub use sequence::check_sequence;

/// What a translator did that it must not do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Violation(pub String);
