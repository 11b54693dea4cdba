//! Driving a run: from its journal to its log, up to its end. Whoever drives holds the claim; every step may be the
//! last one of this process, and every step may be repeated by the next.

mod driver;
mod finish;
mod follow;
mod give_up;
mod launch;

pub(crate) use driver::{DriveEnd, Driver};
pub(crate) use finish::STDERR_TAIL_BYTES;
pub(crate) use give_up::GivenUp;
