//! Sessions under simulated time: ledgers, bodies, their collection, and the end of sessions.

mod bucket;
mod check;
mod content;
mod hosts;
mod objects;
mod plan;
mod runs;
mod trouble;
mod watch;
mod world;
mod writers;

pub use plan::SessionsPlan;
pub(super) use watch::Watch;
pub use world::{SessionsOutcome, simulate_sessions};
