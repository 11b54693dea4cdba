//! Bodies that are too large for the database.

mod error;
mod fetch;
mod lighten;
mod resolve;

pub use error::BodyError;
pub use fetch::Bodies;
pub use lighten::Lightened;
pub use resolve::{Missing, ResolveError, Resolved};
