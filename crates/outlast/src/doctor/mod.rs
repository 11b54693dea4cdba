//! What `outlast doctor` looks at: facts are gathered here and judged by pure functions.

mod agents;
mod ask;
mod check;
mod container;
mod directory;
mod ending;
mod examine;
mod fence;
mod machine;
mod memory;
mod objects;
mod place;
mod service;
mod store;
mod survival;
mod trial;
mod unit;

pub use check::{Check, Level};
pub use examine::{Subject, examine};
pub use survival::warn_at_start;
