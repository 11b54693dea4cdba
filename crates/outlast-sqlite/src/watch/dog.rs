//! Sees to it that nobody waits for a process that stands still.
//!
//! SQLite waits in several ways, and not in all of them does it call back: a writer that was stopped while it made its
//! commit visible holds up readers too, inside SQLite, for up to ten seconds. So a thread of its own looks at the clock.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::files::wake_stopped_writer;

/// How long an operation may take before it is looked at whether another process stands still in a write.
const PATIENCE: Duration = Duration::from_millis(300);

#[derive(Default)]
struct State {
    /// Operations that are going on.
    under_way: usize,
    /// Operations that have ended.
    ended: u64,
    /// Whether the thread waits for the next operation to begin.
    idle: bool,
    closed: bool,
}

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    wake: Condvar,
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that looks. Ends when this is dropped.
pub(crate) struct Watchdog {
    inner: Arc<Inner>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Starts the thread for this database.
    pub(crate) fn spawn(database: &Path) -> std::io::Result<Watchdog> {
        let inner = Arc::<Inner>::default();
        let (watched, database) = (Arc::clone(&inner), database.to_owned());
        let thread = std::thread::Builder::new()
            .name("outlast-watchdog".to_owned())
            .spawn(move || watch(&watched, &database))?;
        Ok(Watchdog { inner, thread: Some(thread) })
    }

    /// Does something with the database that should not take long.
    pub(crate) fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        let _under_way = UnderWay::begin(&self.inner);
        work()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.inner.lock().closed = true;
        self.inner.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// An operation, until it is dropped.
struct UnderWay<'a>(&'a Inner);

impl<'a> UnderWay<'a> {
    fn begin(inner: &'a Inner) -> Self {
        let mut state = inner.lock();
        state.under_way += 1;
        // Only a thread that waits is woken: most operations cost no system call here.
        if std::mem::take(&mut state.idle) {
            inner.wake.notify_one();
        }
        UnderWay(inner)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.under_way -= 1;
        state.ended += 1;
    }
}

fn watch(inner: &Inner, database: &Path) {
    let mut state = inner.lock();
    while !state.closed {
        if state.under_way == 0 {
            state.idle = true;
            state = inner.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        let ended = state.ended;
        let (later, _) = inner
            .wake
            .wait_timeout_while(state, PATIENCE, |state| !state.closed)
            .unwrap_or_else(PoisonError::into_inner);
        state = later;
        if state.under_way > 0 && state.ended == ended && !state.closed {
            drop(state);
            wake_stopped_writer(database);
            state = inner.lock();
        }
    }
}
