//! The store that lives and dies with its process: for tests, and for trying things out.

mod handle;
mod instances;
mod leases;
mod ledger;
mod log;
mod runs;
mod sessions;
mod state;

pub use handle::MemoryStore;
