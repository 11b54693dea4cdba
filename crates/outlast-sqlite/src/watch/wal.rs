//! Watches the write-ahead log. Only a hint: whoever waits for a change also looks by itself.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify;
use tokio::sync::mpsc;

use crate::connection::pause;
use crate::files::DATABASE;
use crate::store::Shared;
use crate::writer::Queue;

/// At most one hint in this time.
const AT_MOST_EVERY: Duration = Duration::from_millis(1);
/// A commit is to be seen only some time after the write that the kernel tells of: it is synced in between, and then
/// made visible in shared memory, of which the kernel tells nothing. So a hint is repeated, ever less often, until this.
const LAST_REPEAT: Duration = Duration::from_millis(1024);
/// How often to look where the kernel does not tell.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The thread that watches, and how to end it.
pub(crate) struct Watch {
    stop: OwnedFd,
}

impl Watch {
    /// Starts the thread. It drops its `alive` when it ends.
    pub(crate) fn spawn(
        shared: Arc<Shared>,
        queue: Arc<Queue>,
        alive: mpsc::Sender<()>,
    ) -> std::io::Result<(Self, JoinHandle<()>)> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let stopped = stop.try_clone()?;
        let thread = std::thread::Builder::new().name("outlast-watch".to_owned()).spawn(move || {
            let told = match subscribe(&shared.data_dir) {
                Ok(inotify) => follow(&inotify, &stopped, &queue),
                Err(error) => Err(error),
            };
            if let Err(error) = told {
                tracing::debug!(%error, "the kernel does not tell of changes; looking every 50 ms");
                look(&shared.wal_path(), &stopped, &queue);
            }
            drop(alive);
        })?;
        Ok((Watch { stop }, thread))
    }

    /// Ends the thread soon.
    pub(crate) fn stop(&self) {
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
    }
}

/// The directory is watched, not the file, which comes and goes.
fn subscribe(data_dir: &Path) -> rustix::io::Result<OwnedFd> {
    let inotify = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
    inotify::add_watch(&inotify, data_dir, inotify::WatchFlags::MODIFY | inotify::WatchFlags::CREATE)?;
    Ok(inotify)
}

fn follow(inotify: &OwnedFd, stop: &OwnedFd, queue: &Queue) -> rustix::io::Result<()> {
    let wal = format!("{DATABASE}-wal");
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut repeat = None;
    loop {
        let mut waiting = [
            PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(inotify.as_fd(), PollFlags::IN),
        ];
        match poll(&mut waiting, repeat.map(timespec).as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        if !waiting[0].revents().is_empty() {
            return Ok(());
        }
        if waiting[1].revents().is_empty() {
            if let Some(waited) = repeat.take() {
                queue.look();
                repeat = (waited < LAST_REPEAT).then_some(waited * 2);
            }
        } else if wal_changed(inotify, &mut buffer, wal.as_bytes())? {
            queue.look();
            // What comes meanwhile is one hint.
            pause(AT_MOST_EVERY);
            repeat = Some(AT_MOST_EVERY);
        }
    }
}

/// Takes all that the kernel has to tell, and whether it is about the write-ahead log.
fn wal_changed(inotify: &OwnedFd, buffer: &mut [MaybeUninit<u8>], wal: &[u8]) -> rustix::io::Result<bool> {
    let mut reader = inotify::Reader::new(inotify, buffer);
    let mut changed = false;
    loop {
        match reader.next() {
            Ok(event) => {
                let lost = event.events().contains(inotify::ReadFlags::QUEUE_OVERFLOW);
                changed |= lost || event.file_name().is_some_and(|name| name.to_bytes() == wal);
            }
            Err(rustix::io::Errno::AGAIN) => return Ok(changed),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
}

fn look(wal: &Path, stop: &OwnedFd, queue: &Queue) {
    let every = timespec(LOOK_EVERY);
    let mut seen = None;
    let mut repeats = 0;
    loop {
        let mut waiting = [PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)];
        if !matches!(poll(&mut waiting, Some(&every)), Ok(0) | Err(rustix::io::Errno::INTR)) {
            return;
        }
        let facts = std::fs::metadata(wal).ok().map(|facts| (facts.len(), facts.modified().ok()));
        if facts != seen {
            seen = facts;
            repeats = LAST_REPEAT.as_millis() / LOOK_EVERY.as_millis();
        }
        if repeats > 0 {
            repeats -= 1;
            queue.look();
        }
    }
}
