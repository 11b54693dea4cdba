//! The store: its roles, each in a file.

mod handle;
mod instances;
mod ledger;
mod log;
mod open;
mod runs;
mod versions;

pub use handle::PostgresStore;
pub(crate) use handle::Shared;
pub use versions::Versions;
