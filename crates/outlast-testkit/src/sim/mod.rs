//! The runtime under simulated time.

mod agent;
mod check;
mod clock;
mod gate;
mod history;
mod hosts;
mod plan;
mod provider;
#[cfg(test)]
mod pruning;
mod sandboxes;
mod store;
mod viewer;
mod world;

pub use plan::Plan;
pub use world::{Outcome, simulate};
