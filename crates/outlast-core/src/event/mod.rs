//! AG-UI events: the words in which an agent's work is told.

mod check;
mod kind;
mod model;
mod text;

pub use check::{NotAnEvent, check_printed};
pub use kind::EventKind;
pub use model::{Chunk, Event, Origin, RUN_ACCEPTED};
pub use text::LooseText;
