//! Opening a store.

use std::sync::{Arc, Mutex};

use outlast_store::{Signals, StoreError};
use tokio::sync::mpsc;

use super::handle::{Held, SqliteStore};
use super::shared::Shared;
use crate::config::SqliteConfig;
use crate::failure::{Failure, unavailable};
use crate::files::{self, Owners, ProcessLock};
use crate::reader::Readers;
use crate::watch::{Watch, Watchdog};
use crate::writer::{self, Queue, Writer};
use crate::{connection, schema};

impl SqliteStore {
    /// The version of the tables that an opened store has.
    pub const SCHEMA_VERSION: i64 = schema::CURRENT;

    /// Opens the store in the directory, or makes it. Blocks for as long as that takes: usually milliseconds, longer
    /// while another process migrates the database.
    ///
    /// [`StoreError::Unusable`] where the directory is on a network file system, the database is damaged, of a newer
    /// version or somebody else's, or needs a migration while other processes use it; the message says what to do.
    /// [`StoreError::Unavailable`] where the disk is full or cannot be written.
    pub fn open(config: SqliteConfig) -> Result<Self, StoreError> {
        let SqliteConfig { data_dir, owner, ports, lock_wait } = config;
        files::make_directory(&data_dir)?;
        files::refuse_network(&data_dir)?;
        let lock = ProcessLock::join(&data_dir)?;
        files::make_database(&data_dir, &owner)?;
        let file = data_dir.join(files::DATABASE);
        let watchdog =
            Watchdog::spawn(&file).map_err(|error| unavailable(format!("cannot start a thread: {error}")))?;
        let mut db = watchdog
            .during(|| connection::open(&file, lock_wait))
            .map_err(|error| Failure::Sql(error).told(&file))?;
        let deployment_id = watchdog.during(|| schema::prepare(&mut db, &file, &lock, &*ports.entropy))?;
        // Known as alive before anything can be claimed in its name.
        let owners = Owners::join(&data_dir, &owner)?;
        owners.clean(ports.clock.wall_ms());
        let shared = Arc::new(Shared {
            data_dir,
            file,
            lock_wait,
            ports,
            owners,
            signals: Signals::shared(),
            deployment_id,
            watchdog,
        });
        let (queue, readers) = (Arc::<Queue>::default(), Arc::<Readers>::default());
        let (alive, ended) = mpsc::channel(1);
        let started = (|| {
            let mut threads = readers.spawn(&shared, &alive)?;
            let (watch, thread) = Watch::spawn(shared.clone(), queue.clone(), alive.clone())?;
            threads.push(thread);
            let writer = Writer { db, shared: shared.clone(), queue: queue.clone(), alive };
            threads.push(writer::spawn(writer)?);
            Ok((watch, threads))
        })();
        match started {
            Ok((watch, threads)) => {
                let held = Mutex::new(Some(Held { threads, _lock: lock }));
                let ended = tokio::sync::Mutex::new(ended);
                Ok(SqliteStore { shared, queue, readers, watch, held, ended })
            }
            Err(error) => {
                let error: std::io::Error = error;
                queue.close();
                readers.close();
                Err(unavailable(format!("cannot start a thread: {error}")))
            }
        }
    }
}
