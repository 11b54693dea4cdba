//! The store as its callers see it.

mod handle;
mod instances;
mod ledger;
mod log;
mod open;
mod runs;
mod shared;

pub use handle::SqliteStore;
pub(crate) use shared::Shared;
