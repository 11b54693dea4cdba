//! What the end-to-end tests share.

mod bench;
mod census;
mod proc;
mod wait;

pub use bench::{Bench, Logged, numbered_agent, numbered_text, parse_stream};
pub use census::{Marker, is_stopped};
pub use proc::{Finished, Proc};
pub use wait::{DEADLINE, eventually, eventually_within};
