//! The launch latch: whoever makes the file decides whether there will ever be an agent.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use outlast_core::journal::files;
use outlast_core::journal::latch::{Latch, LatchState};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

/// Who has the latch after an attempt to take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taking {
    /// This call.
    Taken,
    /// Somebody was faster.
    TakenBefore,
}

/// The latch was not taken, or its content is not safe.
#[derive(Debug)]
pub(crate) enum TakeError {
    /// Nothing has happened: another attempt may succeed.
    NotTaken(io::Error),
    /// The latch is the caller's, but whether it survives a crash, or what it says, is uncertain: the caller must not
    /// start anything, and nobody else will.
    Unsafe(io::Error),
}

/// Takes the latch for a cancel: no agent will ever be started for this run.
///
/// # Errors
///
/// The runs directory does not exist or cannot be written. The latch may then be free.
pub fn take_cancelled(runs_dir: &Path, enc: &str) -> io::Result<Taking> {
    take_cancelled_in(open_dir(runs_dir)?, enc)
}

/// The same in a directory that is open.
///
/// # Errors
///
/// The runs directory cannot be written. The latch may then be free.
pub fn take_cancelled_in(runs_dir: impl AsFd, enc: &str) -> io::Result<Taking> {
    match take(runs_dir, enc, &Latch::Cancelled) {
        Ok(taking) => Ok(taking),
        Err(TakeError::NotTaken(error) | TakeError::Unsafe(error)) => Err(error),
    }
}

/// What the latch says.
///
/// # Errors
///
/// The file exists and cannot be read.
pub fn read(runs_dir: &Path, enc: &str) -> io::Result<LatchState> {
    match std::fs::read(runs_dir.join(format!("{enc}{}", files::LATCH))) {
        Ok(bytes) => Ok(LatchState::parse(Some(&bytes))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(LatchState::Free),
        Err(error) => Err(error),
    }
}

pub(crate) fn open_dir(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Takes the latch. Its content is written and synced before the file has its name, so nobody sees a latch without
/// content, a full disk leaves the latch free, and a crash leaves either no latch or a whole one. `link` fails where
/// the name exists, as `O_EXCL` does.
pub(crate) fn take(dir: impl AsFd, enc: &str, content: &Latch) -> Result<Taking, TakeError> {
    let dir = dir.as_fd();
    let name = format!("{enc}{}", files::LATCH);
    let bytes = serde_json::to_vec(content).map_err(|error| TakeError::NotTaken(error.into()))?;
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(dir, c".", flags, mode()) {
        Ok(file) => file,
        // Some file systems know no nameless files.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => return take_by_name(dir, &name, &bytes),
        Err(error) => return Err(TakeError::NotTaken(error.into())),
    };
    write_synced(&file, &bytes).map_err(TakeError::NotTaken)?;
    let source = format!("/proc/self/fd/{}", file.as_raw_fd());
    match rustix::fs::linkat(rustix::fs::CWD, source, dir, name.as_str(), AtFlags::SYMLINK_FOLLOW) {
        Ok(()) => {}
        Err(Errno::EXIST) => return Ok(Taking::TakenBefore),
        Err(Errno::NOENT | Errno::PERM | Errno::OPNOTSUPP | Errno::XDEV) => {
            return take_by_name(dir, &name, &bytes);
        }
        Err(error) => return Err(TakeError::NotTaken(error.into())),
    }
    // The name must be as durable as the content before an agent exists: a latch that a power cut takes back would
    // allow a second agent.
    rustix::fs::fsync(dir).map_err(|error| TakeError::Unsafe(error.into()))?;
    Ok(Taking::Taken)
}

/// The same where files without a name cannot be had. The name comes first, so a crash can leave a torn latch, which
/// readers take for what it is: somebody had the right and started nothing.
fn take_by_name(dir: impl AsFd, name: &str, bytes: &[u8]) -> Result<Taking, TakeError> {
    let dir = dir.as_fd();
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(dir, name, flags, mode()) {
        Ok(file) => file,
        Err(Errno::EXIST) => return Ok(Taking::TakenBefore),
        Err(error) => return Err(TakeError::NotTaken(error.into())),
    };
    write_synced(&file, bytes).map_err(TakeError::Unsafe)?;
    rustix::fs::fsync(dir).map_err(|error| TakeError::Unsafe(error.into()))?;
    Ok(Taking::Taken)
}

/// Whether the latch is taken, by whomever.
pub(crate) fn is_taken(dir: impl AsFd, enc: &str) -> io::Result<bool> {
    match rustix::fs::statat(dir, format!("{enc}{}", files::LATCH), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn write_synced(file: impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(&file, bytes))?;
        bytes = &bytes[written..];
    }
    Ok(rustix::fs::fsync(&file)?)
}

fn mode() -> Mode {
    Mode::RUSR | Mode::WUSR
}

/// The null device, which is the shim's own standard input, output and error, and the agent's input by default.
pub(crate) const NULL_DEVICE: &CStr = c"/dev/null";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_taker_and_whole_content() {
        let dir = tempfile::tempdir().expect("dir");
        assert_eq!(read(dir.path(), "r").expect("read"), LatchState::Free);
        let taken = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| match take_cancelled(dir.path(), "r").expect("take") {
                    Taking::Taken => taken.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
                    Taking::TakenBefore => {
                        let seen = read(dir.path(), "r").expect("read");
                        assert_eq!(seen, LatchState::Taken(Latch::Cancelled), "never seen half written");
                        0
                    }
                });
            }
        });
        assert_eq!(taken.into_inner(), 1);
        assert_eq!(std::fs::read_dir(dir.path()).expect("dir").count(), 1, "nothing is left beside it");
    }

    #[test]
    fn by_name_excludes_too() {
        let dir = tempfile::tempdir().expect("dir");
        let fd = open_dir(dir.path()).expect("open");
        assert!(matches!(take_by_name(&fd, "r.start", b"{}"), Ok(Taking::Taken)));
        assert!(matches!(take_by_name(&fd, "r.start", b"{}"), Ok(Taking::TakenBefore)));
        assert!(is_taken(&fd, "r").expect("stat"));
        assert_eq!(read(dir.path(), "r").expect("read"), LatchState::Torn);
    }

    #[test]
    fn no_directory_no_latch() {
        let dir = tempfile::tempdir().expect("dir");
        assert!(take_cancelled(&dir.path().join("gone"), "r").is_err());
    }
}
