//! Seeing to it that runs are driven, and telling the store who watches.

mod adopt;
mod keepers;
mod viewers;

pub(crate) use adopt::adopt;
pub(crate) use keepers::Keepers;
pub(crate) use viewers::{Attendance, Viewers};
