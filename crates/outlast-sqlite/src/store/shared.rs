//! What every thread of a store uses.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use outlast_store::{Ports, Signals};

use crate::files::Owners;
use crate::watch::Watchdog;

/// See the module.
pub(crate) struct Shared {
    pub(crate) data_dir: PathBuf,
    /// The database.
    pub(crate) file: PathBuf,
    pub(crate) lock_wait: Duration,
    pub(crate) ports: Ports,
    pub(crate) owners: Owners,
    pub(crate) signals: Arc<Signals>,
    pub(crate) deployment_id: String,
    /// Every operation on the database is done under its eyes.
    pub(crate) watchdog: Watchdog,
}

impl Shared {
    /// The write-ahead log.
    pub(crate) fn wal_path(&self) -> PathBuf {
        let mut path = self.file.clone().into_os_string();
        path.push("-wal");
        path.into()
    }
}
