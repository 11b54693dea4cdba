//! The lock that a shim holds for as long as it lives.
//!
//! It is an open-file-description lock: the kernel releases it when the last descriptor of the shim's own description
//! is closed, whatever ends the shim, and closing some other descriptor of the file releases nothing. The keeper closes
//! its inherited copy before anything else, so the lock says that the shim lives and nothing about the agent.
//!
//! Whoever deletes a run's files takes the same lock, so they are not deleted under a shim. Readers share a lock of the
//! same kind on the journal itself, which no shim ever takes.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

/// What became of an attempt to take the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// The caller's description holds it now.
    Taken,
    /// Another one holds it.
    Held,
}

fn whole_file(kind: libc::c_int) -> libc::flock {
    // SAFETY: `flock` is a plain C struct of integers, for which zero is a valid value.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock
}

/// Tries to take the lock through a description that is open for writing. Never waits.
///
/// # Errors
///
/// The file system knows no such locks.
pub fn try_take(file: impl AsFd) -> io::Result<Attempt> {
    set(file, libc::F_WRLCK)
}

/// Tries to share the lock with others who share it, through a description that is open for reading. Never waits.
///
/// # Errors
///
/// The file system knows no such locks.
pub fn try_share(file: impl AsFd) -> io::Result<Attempt> {
    set(file, libc::F_RDLCK)
}

fn set(file: impl AsFd, kind: libc::c_int) -> io::Result<Attempt> {
    let lock = whole_file(kind);
    // SAFETY: the descriptor is open for the time of the call and `lock` outlives it.
    let done = unsafe { libc::fcntl(file.as_fd().as_raw_fd(), libc::F_OFD_SETLK, &lock) };
    if done == 0 {
        return Ok(Attempt::Taken);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EACCES) => Ok(Attempt::Held),
        _ => Err(error),
    }
}

/// Whether somebody holds the lock, alone or shared. A question only: the lock is never taken for the asking, not even for an instant,
/// so an observer cannot make a shim believe that another one is at work. A file that does not exist is not locked.
///
/// # Errors
///
/// The file exists and cannot be opened, or the file system knows no such locks.
pub fn is_held(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let mut lock = whole_file(libc::F_WRLCK);
    // SAFETY: the descriptor is open for the time of the call and `lock` outlives it.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(lock.l_type != libc::F_UNLCK as libc::c_short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_takes_nothing() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("x.lock");
        assert!(!is_held(&path).expect("no file"));
        let open = || File::options().create(true).append(true).open(&path).expect("open");
        let (first, second) = (open(), open());
        assert!(!is_held(&path).expect("free"));
        assert_eq!(try_take(&first).expect("take"), Attempt::Taken);
        assert!(is_held(&path).expect("held"));
        assert_eq!(try_take(&second).expect("try"), Attempt::Held);
        drop(second);
        assert!(is_held(&path).expect("closing another description releases nothing"));
        drop(first);
        assert!(!is_held(&path).expect("free again"));
    }

    #[test]
    fn those_who_share_keep_out_who_wants_it_alone() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("x.ndjson");
        std::fs::write(&path, "").expect("file");
        let open = || File::options().read(true).write(true).open(&path).expect("open");
        let (first, second, alone) = (open(), open(), open());
        assert_eq!(try_share(&first).expect("share"), Attempt::Taken);
        assert_eq!(try_share(&second).expect("share"), Attempt::Taken);
        drop(first);
        assert_eq!(try_take(&alone).expect("try"), Attempt::Held);
        assert!(is_held(&path).expect("held"));
        drop(second);
        assert_eq!(try_take(&alone).expect("take"), Attempt::Taken);
        assert_eq!(try_share(open()).expect("try"), Attempt::Held);
    }
}
