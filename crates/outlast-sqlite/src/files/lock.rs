//! The lock that every process holds shared for life, and a migration exclusively.
//!
//! Open-file-description locks: they belong to the open file, not to the process, so that two stores in one process
//! exclude each other too; the kernel drops them when the process dies, whatever kills it; and a shared one becomes
//! exclusive, or stays, in one step.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use outlast_store::StoreError;

use crate::failure::unavailable;

/// A lock on a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Shared,
    Exclusive,
}

impl Mode {
    fn raw(self) -> libc::c_int {
        match self {
            Mode::Shared => libc::F_RDLCK,
            Mode::Exclusive => libc::F_WRLCK,
        }
    }
}

fn whole_file(kind: libc::c_int) -> libc::flock {
    // SAFETY: `flock` is plain numbers, for which zeroes are valid: from the start, to the end, no pid.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    // These constants are small on every Linux.
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock
}

fn control(file: &File, command: libc::c_int, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: the descriptor is open for the duration of the call and `lock` is a valid `flock`.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, std::ptr::from_mut(lock)) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Takes or changes the lock if that is possible at once.
pub(super) fn try_lock(file: &File, mode: Mode) -> io::Result<bool> {
    match control(file, libc::F_OFD_SETLK, &mut whole_file(mode.raw())) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Takes the lock, however long it takes.
fn wait_lock(file: &File, mode: Mode) -> io::Result<()> {
    loop {
        match control(file, libc::F_OFD_SETLKW, &mut whole_file(mode.raw())) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Whether somebody else holds a lock on the file. Takes none, so that nobody who asks at the same time is misled.
pub(super) fn is_locked(file: &File) -> io::Result<bool> {
    let mut lock = whole_file(libc::F_WRLCK);
    control(file, libc::F_OFD_GETLK, &mut lock)?;
    Ok(libc::c_int::from(lock.l_type) != libc::F_UNLCK)
}

/// This process' place among those that use the data directory.
#[derive(Debug)]
pub(crate) struct ProcessLock {
    file: File,
}

/// What became of the wish to be alone.
#[derive(Debug)]
pub(crate) enum Upgrade {
    /// No other process uses the data directory, nor will one until the lock is made shared again.
    Alone,
    /// Others do.
    Others,
}

impl ProcessLock {
    /// Joins those that use the directory; waits while one of them migrates it.
    pub(crate) fn join(data_dir: &Path) -> Result<Self, StoreError> {
        let path = data_dir.join("lock");
        let told = |error: io::Error| unavailable(format!("cannot lock {}: {error}", path.display()));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(told)?;
        if !try_lock(&file, Mode::Shared).map_err(told)? {
            tracing::warn!(path = %path.display(), "waiting for another process that migrates the database");
            wait_lock(&file, Mode::Shared).map_err(told)?;
        }
        Ok(ProcessLock { file })
    }

    /// Asks to be alone. Whatever the answer, this process stays one of those that use the directory.
    pub(crate) fn try_alone(&self) -> io::Result<Upgrade> {
        Ok(if try_lock(&self.file, Mode::Exclusive)? { Upgrade::Alone } else { Upgrade::Others })
    }

    /// Lets others in again.
    pub(crate) fn share(&self) -> io::Result<()> {
        wait_lock(&self.file, Mode::Shared)
    }

    /// Leaves for a moment, so that another process that also wants to be alone can be.
    pub(crate) fn step_aside(&self) -> io::Result<()> {
        control(&self.file, libc::F_OFD_SETLK, &mut whole_file(libc::F_UNLCK))
    }
}
