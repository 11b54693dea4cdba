//! Object storage: a directory, or a bucket by URL.

mod error;
mod open;
mod store;

pub use error::ObjectsError;
pub use store::{Listed, Objects};
