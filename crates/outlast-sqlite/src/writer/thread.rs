//! The writer's life.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::mpsc;

use super::batch::Scene;
use super::queue::{Queue, Task};
use crate::connection;
use crate::failure::unavailable;
use crate::store::Shared;

/// After so many commits the size of the write-ahead log is looked at.
const LOOK_AT_WAL_EVERY: u32 = 64;
/// A write-ahead log of more bytes than this is emptied, if need be by waiting for readers.
const WAL_LIMIT: u64 = 16 << 20;
/// How long that waits. A page is read in less; who reads for longer is no part of Outlast.
const READER_WAIT: Duration = Duration::from_millis(100);

/// What the writer's thread owns.
pub(crate) struct Writer {
    pub(crate) db: Connection,
    pub(crate) shared: Arc<Shared>,
    pub(crate) queue: Arc<Queue>,
    /// Dropped when the thread ends.
    pub(crate) alive: mpsc::Sender<()>,
}

/// Starts the thread.
pub(crate) fn spawn(writer: Writer) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("outlast-writer".to_owned()).spawn(move || writer.run())
}

impl Writer {
    fn run(self) {
        let Writer { mut db, shared, queue, alive } = self;
        // Also when this thread panics, nobody waits for it for ever.
        let _end = End { queue: &queue };
        let mut version = data_version(&db);
        let mut commits = 0;
        let mut limit = WAL_LIMIT;
        loop {
            let look = match queue.next() {
                Task::End => break,
                Task::Look => true,
                Task::Write(jobs, look) => {
                    Scene { db: &db, shared: &shared, queue: &queue }.write(jobs);
                    commits += 1;
                    look
                }
            };
            // A transaction that could be neither committed nor rolled back is left behind with its connection.
            if !db.is_autocommit()
                && let Ok(fresh) = connection::open(&shared.file, shared.lock_wait)
            {
                db = fresh;
            }
            if look {
                // This number changes with the commits of other connections only, so own ones wake nobody twice.
                let seen = data_version(&db);
                if seen != version {
                    version = seen;
                    shared.signals.any_changed();
                }
            }
            if commits >= LOOK_AT_WAL_EVERY {
                commits = 0;
                bound_wal(&mut db, &shared, &mut limit);
            }
        }
        // Before the end is told: closing the last connection empties the write-ahead log.
        drop(db);
        drop(alive);
    }
}

struct End<'a> {
    queue: &'a Queue,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        for job in self.queue.drain() {
            job.answer(Err(unavailable("the store is closed")), self.queue);
        }
    }
}

fn data_version(db: &Connection) -> Option<i64> {
    let mut statement = db.prepare_cached("PRAGMA data_version").ok()?;
    statement.query_row([], |row| row.get(0)).ok()
}

/// SQLite empties the log by itself as long as no reader is in the way at that moment. Under readers that take turns
/// without a gap it would grow for ever, so at some size the writer waits for the pages that are being read.
fn bound_wal(db: &mut Connection, shared: &Shared, limit: &mut u64) {
    let wal = shared.wal_path();
    let Ok(size) = std::fs::metadata(&wal).map(|facts| facts.len()) else { return };
    if size <= *limit {
        return;
    }
    let emptied = connection::wait_for_locks(db, READER_WAIT)
        .and_then(|()| db.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get::<_, bool>(0)))
        .map(|busy| !busy);
    if let Err(error) = connection::wait_for_locks(db, shared.lock_wait) {
        tracing::warn!(%error, "cannot set the time to wait for locks");
    }
    if matches!(emptied, Ok(true)) {
        *limit = WAL_LIMIT;
    } else {
        // Writes must not wait for such a reader again and again.
        *limit = size.saturating_mul(2);
        tracing::warn!(path = %wal.display(), size, ?emptied, "somebody reads for long: the write-ahead log grows");
    }
}
