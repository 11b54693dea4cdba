//! Showing streams and lists: as JSON, or for people.

mod human;
mod output;
mod safe;
mod table;

pub(super) use human::shorten;
pub use output::Output;
pub use safe::{printable, printable_text};
pub use table::write_table;
