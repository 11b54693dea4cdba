//! The destination, and what is made beside it.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, statat};
use rustix::io::Errno;

use super::RestoreError;
use super::steps::Steps;
use crate::workspace::files::{NOT_FOLLOWED, names, open_beneath, open_root, remove_tree};

/// Tries for a name that is free.
const NAMES: u32 = 1000;

/// Where a snapshot is restored to.
#[derive(Debug, Clone)]
pub(super) struct Target {
    parent: Arc<OwnedFd>,
    parent_path: PathBuf,
    name: Vec<u8>,
    now_ms: u64,
}

/// A directory beside the destination, that is moved in piece by piece. Removed with what is left of it when it is
/// dropped. Locked while it lives: so nobody takes it for what a dead restore left.
#[derive(Debug)]
pub(super) struct Staging {
    pub(super) directory: OwnedFd,
    parent: Arc<OwnedFd>,
    name: Vec<u8>,
    steps: Steps,
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.steps.dead() {
            // What stays is removed by the next restore.
            let _ = remove_tree(self.parent.as_fd(), &self.name);
        }
    }
}

impl Target {
    /// Opens the directory that the destination lies in. That one may be reached through links; the destination itself
    /// is none.
    pub(super) fn open(
        destination: &Path,
        store: Option<&Path>,
        now_ms: u64,
    ) -> Result<Target, RestoreError> {
        let refuse =
            |message: String| RestoreError::Destination { destination: destination.to_owned(), message };
        let absolute = match destination.file_name() {
            Some(_) => std::path::absolute(destination),
            // It ends with `..`.
            None => destination.canonicalize(),
        };
        let absolute = absolute.map_err(|error| refuse(error.to_string()))?;
        let (Some(parent), Some(name)) = (absolute.parent(), absolute.file_name()) else {
            return Err(refuse("it has no directory above".to_owned()));
        };
        let above = |error: std::io::Error| refuse(format!("the directory above: {error}"));
        let parent_path = parent.canonicalize().map_err(above)?;
        let parent = open_root(&parent_path).map_err(|error| above(error.into()))?;
        let target = Target { parent: Arc::new(parent), parent_path, name: name.as_bytes().to_vec(), now_ms };
        if let Some(store) = store {
            let path = target.path();
            if store.starts_with(&path) || path.starts_with(store) {
                return Err(RestoreError::Overlap { destination: path, store: store.to_owned() });
            }
        }
        Ok(target)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.beside(&self.name)
    }

    fn beside(&self, name: &[u8]) -> PathBuf {
        self.parent_path.join(OsStr::from_bytes(name))
    }

    fn refuse(&self, message: &str) -> RestoreError {
        RestoreError::Destination { destination: self.path(), message: message.to_owned() }
    }

    /// The destination, if it is there.
    pub(super) fn existing(&self) -> Result<Option<OwnedFd>, RestoreError> {
        let stat = match statat(&self.parent, &self.name[..], AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(self.refuse(&error.to_string())),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {}
            FileType::Symlink => {
                return Err(self.refuse("it is a symbolic link: name the directory that it leads to"));
            }
            _ => return Err(self.refuse("it is no directory")),
        }
        let opened = open_beneath(self.parent.as_fd(), &self.name, OFlags::RDONLY | OFlags::DIRECTORY);
        opened.map(Some).map_err(|error| self.refuse(&error.to_string()))
    }

    /// The destination, made where it is missing.
    pub(super) fn make(&self) -> Result<OwnedFd, RestoreError> {
        match mkdirat(&self.parent, &self.name[..], Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(RestoreError::Beside { path: self.path(), message: error.to_string() }),
        }
        self.existing()?.ok_or_else(|| self.refuse("it has gone away"))
    }

    /// Whether things can be moved between the destination and what is beside it, as far as that can be told.
    pub(super) fn check_device(&self, existing: &OwnedFd) -> Result<(), RestoreError> {
        let failed = |error: Errno| self.refuse(&error.to_string());
        let (here, beside) = (fstat(existing).map_err(failed)?, fstat(&self.parent).map_err(failed)?);
        if here.st_dev == beside.st_dev {
            Ok(())
        } else {
            Err(RestoreError::OtherFileSystem { path: self.path() })
        }
    }

    fn staging_prefix(&self) -> Vec<u8> {
        [b".", &self.name[..], b".outlast-restore-"].concat()
    }

    /// Makes a fresh directory beside the destination, and removes what dead restores of it left.
    pub(super) fn stage(&self, steps: &Steps) -> Result<Staging, RestoreError> {
        let prefix = self.staging_prefix();
        steps.next()?;
        let (directory, name) = self.fresh(&prefix)?;
        let staging = Staging { directory, parent: self.parent.clone(), name, steps: steps.clone() };
        flock(&staging.directory, FlockOperation::NonBlockingLockExclusive).map_err(|_| self.busy())?;
        let failed = |error: Errno| self.refuse(&format!("the directory above: {error}"));
        for name in names(self.parent.as_fd()).map_err(failed)? {
            let ours = name.strip_prefix(&prefix[..]).is_some_and(is_number);
            if ours && name != staging.name {
                self.remove_left(&name, steps)?;
            }
        }
        Ok(staging)
    }

    /// Removes what a dead restore left: copies of what is stored, never anything else.
    fn remove_left(&self, name: &[u8], steps: &Steps) -> Result<(), RestoreError> {
        let left = match open_beneath(self.parent.as_fd(), name, OFlags::RDONLY | OFlags::DIRECTORY) {
            Ok(left) => left,
            // Not one of ours, or removed meanwhile.
            Err(_) => return Ok(()),
        };
        flock(&left, FlockOperation::NonBlockingLockExclusive).map_err(|_| self.busy())?;
        steps.next()?;
        if let Err(error) = remove_tree(self.parent.as_fd(), name) {
            tracing::warn!(path = %self.beside(name).display(), %error, "what a dead restore left cannot be removed");
        }
        Ok(())
    }

    fn busy(&self) -> RestoreError {
        RestoreError::Busy { destination: self.path() }
    }

    /// A fresh directory for what is in the way.
    pub(super) fn aside(&self) -> Result<(OwnedFd, PathBuf), RestoreError> {
        let (directory, name) = self.fresh(&[&self.name[..], b".outlast-aside-"].concat())?;
        Ok((directory, self.beside(&name)))
    }

    /// Makes a directory that only its owner may enter: it is not the snapshot's yet, or not any more.
    fn fresh(&self, prefix: &[u8]) -> Result<(OwnedFd, Vec<u8>), RestoreError> {
        let mut last = Errno::EXIST;
        for number in 0..NAMES {
            let time =
                if number == 0 { self.now_ms.to_string() } else { format!("{}-{number}", self.now_ms) };
            let name = [prefix, time.as_bytes()].concat();
            match mkdirat(&self.parent, &name[..], Mode::from_raw_mode(0o700)) {
                Ok(()) => {}
                Err(Errno::EXIST) => continue,
                Err(error) => {
                    return Err(RestoreError::Beside {
                        path: self.beside(&name),
                        message: error.to_string(),
                    });
                }
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | NOT_FOLLOWED;
            match open_beneath(self.parent.as_fd(), &name, flags) {
                Ok(directory) => return Ok((directory, name)),
                Err(error) => last = error,
            }
        }
        Err(RestoreError::Beside { path: self.beside(prefix), message: last.to_string() })
    }
}

fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|b| b.is_ascii_digit() || *b == b'-')
}
