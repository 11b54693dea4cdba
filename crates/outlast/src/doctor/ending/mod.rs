//! What ends by itself: runs that nobody watches, and sandboxes; and who sees to it.

mod facts;
mod judge;

pub use facts::Facts;
pub use judge::{judge, sweep};
