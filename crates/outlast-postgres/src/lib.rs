//! The store for many hosts: one PostgreSQL database.
//!
//! [`PostgresStore`] is an [`outlast_store::Store`]. Every authoritative write locks or updates its run's row in the
//! statement that checks the claim, so a writer that was superseded changes nothing, however late its write arrives.
//! Leases and presence are counted by the database's clock alone. Notifications are hints; whoever relies on one also
//! looks by itself.

mod config;
mod connect;
mod failure;
mod notify;
mod schema;
mod sql;
mod store;

pub use config::PostgresConfig;
pub use store::{PostgresStore, Versions};
