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
const READER_WAIT: Duration = Duration::from_millis(250);
/// Bytes of a page in the log, with its head.
const FRAME: u64 = 4096 + 24;

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
                    let scene = Scene { db: &db, shared: &shared, queue: &queue };
                    shared.watchdog.during(|| scene.write(jobs));
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
                let seen = shared.watchdog.during(|| data_version(&db));
                if seen != version {
                    version = seen;
                    shared.signals.any_changed();
                }
            }
            if commits >= LOOK_AT_WAL_EVERY {
                commits = 0;
                if let Err(error) = bound_wal(&mut db, &shared, &mut limit) {
                    tracing::warn!(%error, "cannot look after the write-ahead log");
                }
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
fn bound_wal(db: &mut Connection, shared: &Shared, limit: &mut u64) -> rusqlite::Result<()> {
    // Not the file's size: the file is overwritten from its start, and keeps the size that it had.
    let (_, frames) = checkpoint(db, "PRAGMA wal_checkpoint(NOOP)")?;
    let size = frames * FRAME;
    if size <= *limit {
        return Ok(());
    }
    connection::wait_for_locks(db, READER_WAIT)?;
    let emptied = checkpoint(db, "PRAGMA wal_checkpoint(RESTART)");
    connection::wait_for_locks(db, shared.lock_wait)?;
    if matches!(emptied, Ok((false, _))) {
        *limit = WAL_LIMIT;
    } else {
        // Not at every look: writes must not wait for such a reader all the time.
        *limit = size + WAL_LIMIT;
        let path = shared.wal_path();
        tracing::warn!(path = %path.display(), size, ?emptied, "somebody reads for long: the write-ahead log grows");
    }
    Ok(())
}

/// Whether somebody was in the way, and how many frames the log has.
fn checkpoint(db: &Connection, pragma: &str) -> rusqlite::Result<(bool, u64)> {
    let mut statement = db.prepare_cached(pragma)?;
    statement.query_row([], |row| Ok((row.get(0)?, u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0))))
}
