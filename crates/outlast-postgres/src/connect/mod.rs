//! Connections.

mod pool;
mod single;
mod target;
mod tls;

pub(crate) use pool::{WAIT, pool};
pub(crate) use single::Single;
pub(crate) use target::Target;
