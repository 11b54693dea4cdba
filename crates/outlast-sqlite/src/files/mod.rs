//! The files beside the database: what processes know of each other.

mod directory;
mod holder;
mod lock;
mod owners;

pub use directory::network_file_system;
pub(crate) use directory::{DATABASE, make_database, make_directory, refuse_network};
pub(crate) use holder::wake_stopped_writer;
pub(crate) use lock::{ProcessLock, Upgrade};
pub(crate) use owners::Owners;
