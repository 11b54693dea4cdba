//! Reading files on several threads.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use crate::workspace::Digest;
use crate::workspace::files::{HashFailed, Hashed, hash_file};
use crate::workspace::threads::Stop;

/// What the threads tell. Bounded, and with it the memory: each may be a chunk.
pub(super) const QUEUE: usize = 16;

/// What a thread has found out.
#[derive(Debug)]
pub(super) enum News {
    /// A chunk that may have to be stored.
    Chunk(Digest, Vec<u8>),
    /// The file with this index is read.
    File(usize, Result<Hashed, HashFailed>),
}

/// Files to read.
pub(super) struct Work {
    pub(super) root: Arc<OwnedFd>,
    /// Index and path.
    pub(super) files: Vec<(usize, Vec<u8>)>,
    /// Bytes of one file at most.
    pub(super) max_bytes: u64,
    /// Chunks that are stored for certain.
    pub(super) stored: Arc<HashSet<Digest>>,
    pub(super) stop: Stop,
}

/// Starts the threads. They end when all is read, when the receiver is dropped, or when they are to stop.
pub(super) fn start(work: Work, threads: usize) -> mpsc::Receiver<News> {
    let (news, receiver) = mpsc::channel(QUEUE);
    let threads = threads.min(work.files.len());
    let work = Arc::new((work, AtomicUsize::new(0), Mutex::new(HashSet::new())));
    for _ in 0..threads {
        let (work, news) = (work.clone(), news.clone());
        std::thread::spawn(move || {
            let (work, next, seen) = &*work;
            let mut buffer = Vec::new();
            while let Some((index, path)) = work.files.get(next.fetch_add(1, Ordering::Relaxed)) {
                let mut each = |digest, chunk: &[u8]| {
                    if work.stop.is_set() {
                        return ControlFlow::Break(());
                    }
                    // Once for each content, however many files have it.
                    let new = !work.stored.contains(&digest)
                        && seen.lock().unwrap_or_else(PoisonError::into_inner).insert(digest);
                    let gone = new && news.blocking_send(News::Chunk(digest, chunk.to_vec())).is_err();
                    if gone { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                };
                let hashed = hash_file(work.root.as_fd(), path, work.max_bytes, &mut buffer, &mut each);
                if news.blocking_send(News::File(*index, hashed)).is_err() {
                    return;
                }
            }
        });
    }
    receiver
}
