//! Reads, each in a snapshot of its own.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use outlast_store::StoreError;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::connection;
use crate::failure::{Tried, unavailable};
use crate::sql::View;
use crate::store::Shared;

/// As many connections read at a time.
const THREADS: usize = 2;

type Read = Box<dyn FnOnce(&Reader<'_>) + Send>;

#[derive(Default)]
struct State {
    waiting: VecDeque<Read>,
    closed: bool,
}

/// The reads that wait for a thread.
#[derive(Default)]
pub(crate) struct Readers {
    state: Mutex<State>,
    wake: Condvar,
}

/// A connection that reads, or why there is none.
struct Reader<'a> {
    db: Result<&'a Connection, StoreError>,
    shared: &'a Shared,
}

impl Readers {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the threads. Each drops its `alive` when it ends.
    pub(crate) fn spawn(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        alive: &mpsc::Sender<()>,
    ) -> std::io::Result<Vec<JoinHandle<()>>> {
        (0..THREADS)
            .map(|_| {
                let (readers, shared, alive) = (self.clone(), shared.clone(), alive.clone());
                std::thread::Builder::new().name("outlast-reader".to_owned()).spawn(move || {
                    readers.work(&shared);
                    drop(alive);
                })
            })
            .collect()
    }

    /// Takes no more reads; those that wait are still answered.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_all();
    }

    /// Reads in one snapshot.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&View<'_>) -> Tried<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let read: Read = Box::new(move |reader| {
            // Nobody waits for it any more.
            if !reply.is_closed() {
                let _ = reply.send(reader.read(work));
            }
        });
        {
            let mut state = self.lock();
            if state.closed {
                return Err(unavailable("the store is closed"));
            }
            state.waiting.push_back(read);
        }
        self.wake.notify_one();
        answer.await.unwrap_or_else(|_| Err(unavailable("the store is closed")))
    }

    fn next(&self) -> Option<Read> {
        let mut state = self.lock();
        loop {
            if let Some(read) = state.waiting.pop_front() {
                return Some(read);
            }
            if state.closed {
                return None;
            }
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn work(&self, shared: &Shared) {
        // Opened with the first read: a command that only writes does not pay for it.
        let mut db = None;
        while let Some(read) = self.next() {
            let opened = match &mut db {
                Some(db) => Ok(&*db),
                None => match shared.watchdog.during(|| connection::open(&shared.file, shared.lock_wait)) {
                    Ok(opened) => Ok(&*db.insert(opened)),
                    Err(error) => Err(crate::failure::Failure::Sql(error).told(&shared.file)),
                },
            };
            read(&Reader { db: opened, shared });
        }
    }
}

impl Reader<'_> {
    fn read<T>(&self, work: impl FnOnce(&View<'_>) -> Tried<T>) -> Result<T, StoreError> {
        let db = self.db.clone()?;
        let outcome = self.shared.watchdog.during(|| {
            db.prepare_cached("BEGIN")?.execute([])?;
            let value = work(&View::now(db, &self.shared.owners, &self.shared.ports));
            db.prepare_cached("ROLLBACK")?.execute([])?;
            value
        });
        if !db.is_autocommit() {
            let _ = db.execute_batch("ROLLBACK");
        }
        outcome.map_err(|failure| {
            let told = failure.told(&self.shared.file);
            tracing::warn!("{told}");
            told
        })
    }
}
