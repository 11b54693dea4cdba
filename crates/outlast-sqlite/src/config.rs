//! What a store needs to know.

use std::path::PathBuf;
use std::time::Duration;

use outlast_core::OwnerId;
use outlast_store::Ports;

/// How to open a [`crate::SqliteStore`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SqliteConfig {
    /// The directory that holds everything; made (for its user only) where it is missing. Not on a network file system.
    pub data_dir: PathBuf,
    /// This process, under an id that no process has had before.
    pub owner: OwnerId,
    /// Time and randomness.
    pub ports: Ports,
    /// How long a write waits for another process that holds the database before it is answered with
    /// [`outlast_store::StoreError::Unavailable`]. Default: 5 s.
    pub lock_wait: Duration,
}

impl SqliteConfig {
    /// The usual configuration.
    pub fn new(data_dir: impl Into<PathBuf>, owner: OwnerId, ports: Ports) -> Self {
        SqliteConfig { data_dir: data_dir.into(), owner, ports, lock_wait: Duration::from_secs(5) }
    }
}
