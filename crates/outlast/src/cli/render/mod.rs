//! Showing a stream: as lines of JSON, or for people.

mod human;
mod output;
mod safe;

pub(super) use human::shorten;
pub use output::Output;
pub use safe::{printable, printable_text};
