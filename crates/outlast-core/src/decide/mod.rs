//! The decisions, as pure functions over plain data. I/O crates gather the facts, ask here, and carry out the answer.

mod accept;
mod cancel;
mod claim;
mod end;
mod follow;
mod presence;

pub use accept::{AcceptDecision, AcceptFacts, AcceptRefusal, ExistingRun, accept};
pub use cancel::{CancelDecision, cancel};
pub use claim::{ClaimFacts, ClaimRefusal, Fenced, Lease, claim, fence};
pub use end::{EndVerdict, Ending, end};
pub use follow::{Next, SandboxFacts, next, silent};
pub use presence::detached_since;
