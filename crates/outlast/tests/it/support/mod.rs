//! What the end-to-end tests share.

mod bench;
mod census;
mod disk;
mod gate;
mod proc;
mod pty;
mod sandbox;
mod skip;
mod tree;
mod user;
mod wait;

pub use bench::{Bench, Logged, numbered_agent, numbered_text, parse_stream};
pub use census::{Marker, is_stopped, kill9};
pub use disk::SmallDisk;
pub use gate::{gated_agent, gated_script};
pub use proc::{Finished, Proc};
pub use pty::terminal;
pub use sandbox::{peak_memory, resident_memory};
pub use skip::skipped;
pub use tree::{stubborn_agent, wait_for_tree};
pub use user::Ordinary;
pub use wait::{eventually, eventually_within};
