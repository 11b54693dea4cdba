//! Wakes readers when a run's files change. A hint: a reader that gets none looks by itself.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use outlast_core::journal::files;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// One inotify instance for all readers of a provider: a user has only 128 of them by default. One watch for each runs
/// directory: files that do not exist yet need none of their own.
#[derive(Debug, Default)]
pub(super) struct Watches {
    shared: Mutex<Option<Arc<Shared>>>,
}

/// Readers by encoded run id.
type OfDirectory = HashMap<String, Vec<Arc<Waker>>>;

#[derive(Debug)]
struct Shared {
    inotify: Arc<OwnedFd>,
    /// By watch descriptor.
    readers: Mutex<HashMap<i32, OfDirectory>>,
    dispatcher: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Waker {
    notify: Notify,
    /// The latch was taken, or somebody who wrote one of the files has closed it.
    turned: AtomicBool,
}

/// A reader's place among the watches.
#[derive(Debug)]
pub(super) struct Watch {
    shared: Arc<Shared>,
    descriptor: i32,
    enc: String,
    waker: Arc<Waker>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watches {
    /// Watches a run's files; none where the system has no watch left. Called within a runtime.
    pub(super) fn watch(&self, runs: &Path, enc: &str) -> Option<Watch> {
        let shared = {
            let mut shared = lock(&self.shared);
            if shared.is_none() {
                let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
                *shared = Some(Arc::new(Shared {
                    inotify: Arc::new(inotify),
                    readers: Mutex::default(),
                    dispatcher: Mutex::default(),
                }));
            }
            Arc::clone(shared.as_ref()?)
        };
        shared.ensure_dispatcher()?;
        // A shim that dies closes its files, which is how its death is heard.
        let flags = WatchFlags::CREATE | WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO;
        let waker = Arc::new(Waker::default());
        // Adding and removing happen under one lock: the kernel gives one descriptor for one directory.
        let mut readers = lock(&shared.readers);
        let descriptor = inotify::add_watch(&shared.inotify, runs, flags).ok()?;
        readers.entry(descriptor).or_default().entry(enc.to_owned()).or_default().push(Arc::clone(&waker));
        drop(readers);
        Some(Watch { shared, descriptor, enc: enc.to_owned(), waker })
    }
}

impl Shared {
    /// Events are read by a task of the runtime that asked first; if that runtime is gone, by one of the next.
    fn ensure_dispatcher(self: &Arc<Self>) -> Option<()> {
        let mut dispatcher = lock(&self.dispatcher);
        if dispatcher.as_ref().is_none_or(JoinHandle::is_finished) {
            let runtime = tokio::runtime::Handle::try_current().ok()?;
            // SAFETY: the descriptor is owned through the `Arc`, which nothing can replace or close while it is held.
            let events = unsafe { AsyncFd::register(Arc::clone(&self.inotify)) }.ok()?;
            *dispatcher = Some(runtime.spawn(dispatch(events, Arc::downgrade(self))));
        }
        Some(())
    }

    fn wake(&self, descriptor: i32, name: Option<&[u8]>, events: ReadFlags) {
        let readers = lock(&self.readers);
        let Some(of_directory) = readers.get(&descriptor) else {
            return;
        };
        let Some((enc, suffix)) = name.map(split) else {
            // The directory itself is gone.
            of_directory.values().flatten().for_each(|waker| waker.wake(true));
            return;
        };
        let relevant = [files::JOURNAL, files::EXIT, files::LATCH, files::LOCK].contains(&suffix);
        if relevant && let Some(wakers) = of_directory.get(enc) {
            // A shim that dies closes its files.
            let turned = suffix == files::LATCH || events.contains(ReadFlags::CLOSE_WRITE);
            wakers.iter().for_each(|waker| waker.wake(turned));
        }
    }

    fn wake_all(&self) {
        lock(&self.readers).values().flat_map(HashMap::values).flatten().for_each(|waker| waker.wake(true));
    }
}

/// Encoded run id and suffix of a file's name. A suffix holds one dot, its first character.
fn split(name: &[u8]) -> (&str, &str) {
    let name = std::str::from_utf8(name).unwrap_or_default();
    name.rfind('.').map_or((name, ""), |dot| name.split_at(dot))
}

impl Waker {
    fn wake(&self, turned: bool) {
        if turned {
            self.turned.store(true, Ordering::Release);
        }
        // A permit is kept if nobody waits at this moment, so no change between a look and a wait is missed.
        self.notify.notify_one();
    }
}

impl Watch {
    /// Returns when the files may have changed since the last call; whether the latch was taken or somebody who wrote
    /// one of them has closed it.
    pub(super) async fn changed(&self) -> bool {
        self.waker.notify.notified().await;
        self.waker.turned.swap(false, Ordering::AcqRel)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut readers = lock(&self.shared.readers);
        let Some(of_directory) = readers.get_mut(&self.descriptor) else {
            return;
        };
        if let Some(wakers) = of_directory.get_mut(&self.enc) {
            wakers.retain(|waker| !Arc::ptr_eq(waker, &self.waker));
            if wakers.is_empty() {
                of_directory.remove(&self.enc);
            }
        }
        if of_directory.is_empty() {
            readers.remove(&self.descriptor);
            let _ = inotify::remove_watch(&self.shared.inotify, self.descriptor);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(dispatcher) = lock(&self.dispatcher).take() {
            dispatcher.abort();
        }
    }
}

async fn dispatch(events: AsyncFd<Arc<OwnedFd>>, shared: Weak<Shared>) {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    loop {
        let Ok(mut ready) = events.readable().await else {
            return;
        };
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let mut reader = inotify::Reader::new(events.get_ref(), &mut buffer);
        loop {
            match reader.next() {
                Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => shared.wake_all(),
                Ok(event) => {
                    shared.wake(event.wd(), event.file_name().map(|name| name.to_bytes()), event.events());
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
        }
        ready.clear_ready();
    }
}
