//! The runtime under simulated time.

mod agent;
mod check;
mod clock;
mod gate;
mod history;
mod hosts;
mod ledger;
mod plan;
mod provider;
#[cfg(test)]
mod pruning;
mod sandboxes;
mod sessions;
mod store;
mod viewer;
mod world;

pub use plan::Plan;
pub use sessions::{SessionsOutcome, SessionsPlan, simulate_sessions};
pub use world::{Outcome, simulate};
