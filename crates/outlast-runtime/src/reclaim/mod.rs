//! The end of sandboxes.

mod destroy;
mod due;
mod orphans;
mod outcome;
mod view;

pub use orphans::{Orphan, OrphanState};
pub use outcome::{ReclaimOutcome, ReclaimResult, ReclaimedSandbox, SandboxReclaimFailed};
pub use view::SandboxView;
