//! The run's files in the runs directory.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use outlast_core::journal::files;
use rustix::fs::{Mode, OFlags};

use crate::latch;

/// The runs directory, held open, so that a shim that was frozen while its sandbox was destroyed can make no file in a
/// new one of the same name.
pub(crate) struct RunsDir {
    path: PathBuf,
    enc: String,
    fd: OwnedFd,
}

/// What the shim writes while the agent runs.
pub(crate) struct RunFiles {
    pub(crate) journal: OwnedFd,
    pub(crate) stderr: OwnedFd,
    pub(crate) exit: OwnedFd,
}

impl RunsDir {
    pub(crate) fn open(path: &Path, enc: &str) -> io::Result<Self> {
        Ok(RunsDir { path: path.to_owned(), enc: enc.to_owned(), fd: latch::open_dir(path)? })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(crate) fn enc(&self) -> &str {
        &self.enc
    }

    /// Whether the path still leads here. A destroyer moves the directory away before it looks for locks; so whoever
    /// holds a lock and then finds the directory in its place will be seen by the destroyer.
    pub(crate) fn in_place(&self) -> bool {
        match (rustix::fs::stat(&self.path), rustix::fs::fstat(&self.fd)) {
            (Ok(there), Ok(here)) => (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino),
            _ => false,
        }
    }

    /// Opens the run's file with this suffix, making it. Links are not followed: an agent that could plant one must
    /// not choose where its shim writes.
    pub(crate) fn file(&self, suffix: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let name = format!("{}{suffix}", self.enc);
        Ok(rustix::fs::openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR)?)
    }

    /// Makes the files that the agent's output goes to. The exit file's block is written and synced now, so that a
    /// disk that is full later still takes the exit.
    pub(crate) fn create_files(&self) -> io::Result<RunFiles> {
        let append = OFlags::WRONLY | OFlags::APPEND;
        let created = RunFiles {
            journal: self.file(files::JOURNAL, append)?,
            stderr: self.file(files::STDERR, OFlags::RDWR | OFlags::APPEND)?,
            exit: self.file(files::EXIT, OFlags::WRONLY)?,
        };
        write_at_start(&created.exit, &[b' '; files::EXIT_BYTES])?;
        rustix::fs::fsync(&created.exit)?;
        Ok(created)
    }
}

/// Writes everything at the file's start.
pub(crate) fn write_at_start(file: impl AsFd, bytes: &[u8]) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        done += rustix::io::retry_on_intr(|| rustix::io::pwrite(&file, &bytes[done..], done as u64))?;
    }
    Ok(())
}
