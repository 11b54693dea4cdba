//! Bringing runs that nobody watches to their end.

mod expire;
mod finalize;
mod options;
mod result;
mod steps;
mod sweep;

pub use options::ReapOptions;
pub use result::{ReapError, ReapOutcome, ReapResult, ReapRun};
pub use steps::{Driven, ReapClaim, ReapSteps, ShippedSteps};
pub(crate) use sweep::SweepFrom;
