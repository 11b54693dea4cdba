//! The collection of bodies to which nothing points.

mod decide;
mod gc;
mod live;
mod result;

pub use gc::{GcOptions, ObjectGc, StillWanted};
pub use result::{GcDelete, GcError, GcLeaseNotHeld, GcList, GcResult, GcScan};
