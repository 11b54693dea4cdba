//! Connections and their settings.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

/// Opens a connection. The file must exist: it is made elsewhere, for its user only.
pub(crate) fn open(file: &Path, lock_wait: Duration) -> rusqlite::Result<Connection> {
    // One thread uses a connection at a time, so SQLite's own mutexes only cost.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(file, flags)?;
    wait_for_locks(&mut connection, lock_wait)?;
    // FULL: a commit is on the disk before it is answered. The size limit gives the disk back what a burst took.
    connection.execute_batch(
        "PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA trusted_schema=OFF; \
         PRAGMA journal_size_limit=33554432;",
    )?;
    // More than there are statements: one that falls out would be prepared again at each use.
    connection.set_prepared_statement_cache_capacity(192);
    Ok(connection)
}

/// Waits for a lock in small steps: SQLite's own handler soon sleeps for 100 ms at a time, and behind another process
/// that commits without a pause it would find the lock free only by luck.
pub(crate) fn wait_for_locks(connection: &mut Connection, limit: Duration) -> rusqlite::Result<()> {
    let mut waited = Duration::ZERO;
    connection.busy_handler(Some(move |tries: i32| {
        if tries == 0 {
            waited = Duration::ZERO;
        }
        let step = Duration::from_micros(match tries {
            ..20 => 250,
            20..200 => 1_000,
            _ => 5_000,
        });
        if waited >= limit {
            return false;
        }
        pause(step);
        waited += step;
        true
    }))
}

/// Waits on a thread of the store. Outside the `Clock` port because no decision depends on it: it only spaces out
/// attempts of SQLite, which knows no simulated time.
pub(crate) fn pause(time: Duration) {
    let request = rustix::time::Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    };
    // A signal that cuts the pause short does no harm.
    let _ = rustix::thread::nanosleep(&request);
}
