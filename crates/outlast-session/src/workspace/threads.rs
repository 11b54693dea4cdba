//! Threads for work that blocks or computes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// The thread has died: it panicked, which its message on standard error tells of.
#[derive(Debug, thiserror::Error)]
#[error("a thread has died")]
pub(super) struct Died;

/// Does it on a thread of its own. Where the caller goes away, the thread ends what it began.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Died> {
    let (done, answer) = oneshot::channel();
    std::thread::spawn(move || done.send(work()).ok());
    answer.await.map_err(|_| Died)
}

/// Threads that take one piece of work after the other, and end when nobody can give them more.
#[derive(Debug)]
pub(super) struct Pool {
    jobs: Sender<Job>,
}

impl Pool {
    pub(super) fn new(threads: usize) -> Pool {
        let (jobs, queue) = channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..threads {
            let queue = queue.clone();
            std::thread::spawn(move || {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    match next {
                        Ok(job) => job(),
                        Err(_) => return,
                    }
                }
            });
        }
        Pool { jobs }
    }

    /// Does it on one of the threads; not at all where the caller has gone before its turn.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Died> {
        let (done, answer) = oneshot::channel();
        let job = move || {
            if !done.is_closed() {
                let _ = done.send(work());
            }
        };
        self.jobs.send(Box::new(job)).map_err(|_| Died)?;
        answer.await.map_err(|_| Died)
    }
}

/// Tells threads that nobody waits for them any more: set by hand, or when its guard is dropped.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

/// Sets the [`Stop`] when it is dropped.
#[derive(Debug)]
pub(super) struct StopGuard(Stop);

impl Stop {
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn guard(&self) -> StopGuard {
        StopGuard(self.clone())
    }
}

impl Drop for StopGuard {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// How many threads compute, where the caller does not say.
pub(super) fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8)
}
