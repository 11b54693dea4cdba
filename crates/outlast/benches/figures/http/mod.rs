//! The server: what its clients see, and what it takes.

pub mod client;
mod latency;
mod memory;
mod rate;
mod replay;
pub mod served;

pub use latency::latency;
pub use memory::{idle_server, idle_viewers, stalled_viewers};
pub use rate::runs_started;
pub use replay::replay;
