//! From objects to a directory.

mod apply;
mod compare;
mod error;
mod exact;
mod options;
mod overlay;
mod run;
mod stage;
mod steps;
mod target;

pub use error::RestoreError;
pub use options::{RestoreMode, RestoreOptions, Restored};

#[cfg(test)]
mod tests;
