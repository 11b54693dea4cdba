//! The decisions, as pure functions over plain data. I/O crates gather the facts, ask here, and carry out the answer.

mod accept;
mod append;
mod cancel;
mod claim;
mod end;
mod follow;
mod ledger;
mod orphan;
mod presence;
mod prune;
mod reap;
mod reclaim;

pub use accept::{AcceptAsk, AcceptDecision, AcceptFacts, AcceptRefusal, ExistingRun, accept};
pub use append::{EndRefusal, WriteDecision, WriteFacts, WriteRefusal};
pub use cancel::{CancelDecision, cancel};
pub use claim::{ClaimAsk, ClaimFacts, ClaimRefusal, Fenced, Grant, Lease, claim};
pub use end::{EndVerdict, Ending, end};
pub use follow::{Next, SandboxFacts, next, silent};
pub use ledger::{
    DeleteRefusal, LeaseRefusal, RecordDecision, RecordsAsk, RecordsFacts, RecordsRefusal, SessionState,
    bodies,
};
pub use orphan::{InstanceRow, OrphanFacts, OrphanStep, orphan};
pub use presence::detached_since;
pub use prune::{FilesAge, KeepReason, PruneFacts, PruneRecord, PruneStep, PruneTimes, RunUse, prune};
pub use reap::{Reach, STALLS, SweepFacts, SweepStep, sweep};
pub use reclaim::{ReclaimFacts, ReclaimRefusal, reclaim, reclaim_after, reclaim_retry};
