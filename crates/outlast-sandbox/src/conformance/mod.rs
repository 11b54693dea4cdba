//! The suite that every provider runs: what [`crate::Provider`] promises, shown with real shims and real processes.
//!
//! A provider's tests implement [`Subject`] and run every one of [`cases`]. A case panics where the promise is broken.

mod bench;
mod cases;
mod create;
mod destroy;
mod journal;
mod kill;
mod launch;
mod prune;
mod subject;

pub use cases::{Case, Running, cases};
pub use subject::{Subject, census};
