//! What both modes do to the destination.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{Mode, fchmod, mkdirat, syncfs};
use rustix::io::Errno;

use super::RestoreError;
use super::steps::Steps;
use super::target::{Staging, Target};
use crate::workspace::files::{open_directory_for_change, rename_new};
use crate::workspace::manifest::parts;
use crate::workspace::{EntryKind, Manifest};

/// Where something lies: an open directory, its path in the destination, and a name.
pub(super) type At<'a> = (BorrowedFd<'a>, &'a [u8]);

/// The destination while it is changed.
pub(super) struct Apply<'a> {
    pub(super) target: &'a Target,
    pub(super) staging: &'a Staging,
    pub(super) manifest: &'a Manifest,
    pub(super) root: OwnedFd,
    root_mode: u16,
    pub(super) steps: &'a Steps,
    aside: Option<(OwnedFd, PathBuf)>,
    pub(super) put_aside: u64,
}

impl<'a> Apply<'a> {
    pub(super) fn begin(
        target: &'a Target,
        staging: &'a Staging,
        manifest: &'a Manifest,
        steps: &'a Steps,
    ) -> Result<Apply<'a>, RestoreError> {
        steps.next()?;
        let made = target.make()?;
        let (root, root_mode) = open_directory_for_change(made.as_fd(), b"")
            .map_err(|error| failed("change", target.path(), error))?;
        Ok(Apply { target, staging, manifest, root, root_mode, steps, aside: None, put_aside: 0 })
    }

    /// Moves what is in the way to the same path in the directory for that.
    pub(super) fn put_aside(&mut self, from: At<'_>, path: &[u8]) -> Result<(), RestoreError> {
        self.steps.next()?;
        if self.aside.is_none() {
            self.aside = Some(self.target.aside()?);
        }
        let Some((aside, aside_path)) = &self.aside else { return Ok(()) };
        self.steps.next()?;
        let (above, name) = parts(path);
        let above =
            make_all(aside.as_fd(), above).map_err(|error| failed("write", aside_path.clone(), error))?;
        let to = above.as_ref().unwrap_or(aside).as_fd();
        match rename_new(from, (to, name)) {
            Ok(()) => self.put_aside += 1,
            // It went away by itself.
            Err(Errno::NOENT) => {}
            Err(Errno::XDEV) => return Err(RestoreError::OtherFileSystem { path: self.path(path) }),
            Err(error) => return Err(failed("put aside", self.path(path), error)),
        }
        Ok(())
    }

    /// Moves from the staging directory into the destination.
    pub(super) fn move_in(&self, from: At<'_>, to: At<'_>, path: &[u8]) -> Result<(), RestoreError> {
        self.steps.next()?;
        rename_new(from, to).map_err(|error| match error {
            Errno::EXIST => RestoreError::Changed { path: self.path(path) },
            Errno::XDEV => RestoreError::OtherFileSystem { path: self.path(path) },
            error => failed("move", self.path(path), error),
        })
    }

    /// Gives all directories their modes, and sees to it that everything lasts. Returns where things lie aside.
    pub(super) fn finish(self) -> Result<Option<PathBuf>, RestoreError> {
        // What lies within a directory first: then it can still be reached.
        for entry in self.manifest.entries().iter().rev() {
            let EntryKind::Directory { mode } = entry.kind else { continue };
            let fail = |error: Errno| failed("set the mode of", self.path(&entry.path), error);
            let (directory, found) =
                open_directory_for_change(self.root.as_fd(), &entry.path).map_err(fail)?;
            if found != mode || mode & 0o700 != 0o700 {
                self.steps.next()?;
                fchmod(&directory, Mode::from_raw_mode(u32::from(mode))).map_err(fail)?;
            }
        }
        let path = self.target.path();
        fchmod(&self.root, Mode::from_raw_mode(u32::from(self.root_mode)))
            .map_err(|error| failed("set the mode of", path.clone(), error))?;
        syncfs(&self.root).map_err(|error| failed("sync", path, error))?;
        Ok(self.aside.map(|(_, path)| path))
    }

    pub(super) fn path(&self, path: &[u8]) -> PathBuf {
        self.target.path().join(OsStr::from_bytes(path))
    }
}

pub(super) fn failed(what: &'static str, path: PathBuf, error: Errno) -> RestoreError {
    RestoreError::Write { what, path, message: error.to_string() }
}

/// Makes the directories of a path as far as they are missing; opens the last one, none for an empty path.
fn make_all(root: BorrowedFd<'_>, path: &[u8]) -> Result<Option<OwnedFd>, Errno> {
    let mut at: Option<OwnedFd> = None;
    for segment in path.split(|b| *b == b'/').filter(|segment| !segment.is_empty()) {
        let above = at.as_ref().map_or(root, AsFd::as_fd);
        match mkdirat(above, segment, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
        at = Some(open_directory_for_change(above, segment)?.0);
    }
    Ok(at)
}
