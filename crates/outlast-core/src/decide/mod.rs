//! The decisions, as pure functions over plain data. I/O crates gather the facts, ask here, and carry out the answer.

mod accept;
mod claim;
mod end;
mod follow;
mod presence;

pub use accept::{AcceptDecision, AcceptFacts, AcceptRefusal, ExistingRun, accept};
pub use claim::{ClaimFacts, ClaimRefusal, Fenced, Lease, claim, fence};
pub use end::{EndVerdict, Ending, end};
pub use follow::{Next, SandboxFacts, next, silent};
pub use presence::detached_since;
