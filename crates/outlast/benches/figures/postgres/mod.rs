//! The store for many hosts: how fast it writes, what its fence costs, how soon another host goes on.

mod appends;
mod fence;
mod place;
mod takeover;

pub use appends::appends;
pub use fence::fence;
pub use place::Schema;
pub use takeover::takeover;
