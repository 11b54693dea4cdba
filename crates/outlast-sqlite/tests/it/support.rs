//! Stores in directories of their own.

use std::path::Path;
use std::sync::Arc;

use outlast_core::OwnerId;
use outlast_sqlite::{SqliteConfig, SqliteStore};
use outlast_store::{Ports, Store, StoreError};

/// A configuration as a process would have it.
pub fn config(data_dir: &Path, owner: &str) -> SqliteConfig {
    SqliteConfig::new(data_dir, OwnerId::new(owner).unwrap(), Ports::system())
}

/// A store on the machine's own clock.
pub fn open(data_dir: &Path, owner: &str) -> Arc<dyn Store> {
    Arc::new(try_open(data_dir, owner).unwrap())
}

pub fn try_open(data_dir: &Path, owner: &str) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(config(data_dir, owner))
}
