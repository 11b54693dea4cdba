//! What happens to a run, from its acceptance to its end.
//!
//! A [`Host`] is one process that may drive runs. It accepts ([`Host::start`]), keeps a run driven for as long as
//! somebody wants it ([`Host::keep`]), follows logs ([`Host::view`]) and stops runs ([`Host::cancel`]). Nothing here
//! keeps state that a successor would need: killed at any step, another host goes on from what is durable.

mod accept;
mod cancel;
mod checkpoint;
mod claim;
mod drive;
mod env;
mod fail;
mod hold;
mod host;
mod keep;
mod notice;
mod observe;
mod options;
mod presence;
mod probe;
mod prune;
mod reap;
mod reclaim;
mod retain;
mod sessions;
mod side_by_side;
mod verify;
mod view;

pub use accept::{Start, StartError, Started};
pub use cancel::{CancelError, CancelReport};
pub use checkpoint::{CheckpointWhen, WorkspaceOptions};
pub use env::Environment;
pub use host::{Host, HostConfig};
pub use keep::{KeepEnd, Keeper};
pub use notice::{Notice, Notices};
pub use observe::Observer;
pub use options::Options;
pub use presence::Presence;
pub use probe::RunProbe;
pub use prune::{PruneFailure, PruneKept, PruneOptions, PruneResult, PruneStage};
pub use reap::{
    Driven, ReapClaim, ReapError, ReapOptions, ReapOutcome, ReapResult, ReapRun, ReapSteps, ShippedSteps,
};
pub use reclaim::{
    Orphan, OrphanState, ReclaimOutcome, ReclaimResult, ReclaimedSandbox, SandboxReclaimFailed, SandboxView,
};
pub use retain::{RetainOptions, RetainResult};
pub use verify::{VerifyError, VerifyReport};
pub use view::{Seen, Viewer};
