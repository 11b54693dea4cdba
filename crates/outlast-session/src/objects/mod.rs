//! Object storage: a directory, or a bucket by URL.

mod error;
mod open;
mod store;
mod sync;

pub use error::ObjectsError;
pub use store::{Listed, Objects};
