//! The embedded store: one SQLite file for all processes of a machine.
//!
//! [`SqliteStore`] is an [`outlast_store::Store`]. What it writes is on the disk before it answers (WAL,
//! `synchronous=FULL`). Any number of processes share the file; a process that dies is known to be dead at once, since
//! each holds a lock for life.

mod config;
mod connection;
mod failure;
mod files;
mod reader;
mod schema;
mod sql;
mod store;
mod watch;
mod writer;

pub use config::SqliteConfig;
pub use files::network_file_system;
pub use store::SqliteStore;
