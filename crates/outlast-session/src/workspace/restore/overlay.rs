//! The destination holds the snapshot, and what it held besides.

use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fchmod, mkdirat, readlinkat, statat};
use rustix::io::Errno;

use super::RestoreError;
use super::apply::{Apply, failed};
use super::compare::each_same;
use crate::workspace::files::{open_beneath, open_directory_for_change};
use crate::workspace::manifest::parts;
use crate::workspace::threads::Stop;
use crate::workspace::{Entry, EntryKind, Manifest};

/// For each entry, whether the destination holds it already (its mode apart).
pub(super) fn held(root: BorrowedFd<'_>, manifest: &Manifest, threads: usize, stop: &Stop) -> Vec<bool> {
    let mut held = vec![false; manifest.entries().len()];
    let mut files = Vec::new();
    for (at, entry) in manifest.entries().iter().enumerate() {
        match looks_like(root, entry) {
            Ok(true) if matches!(entry.kind, EntryKind::File { .. }) => files.push((at, entry)),
            Ok(looks) => held[at] = looks,
            // Whatever it is, it is not known to be this.
            Err(_) => {}
        }
    }
    let entries: Vec<&Entry> = files.iter().map(|(_, entry)| *entry).collect();
    let found = Mutex::new(&mut held);
    each_same(root, &entries, threads, &|at, same| {
        found.lock().unwrap_or_else(PoisonError::into_inner)[files[at].0] = same;
        if stop.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    held
}

fn looks_like(root: BorrowedFd<'_>, entry: &Entry) -> Result<bool, Errno> {
    let (above, name) = parts(&entry.path);
    let above = open_beneath(root, above, OFlags::RDONLY | OFlags::DIRECTORY)?;
    let stat = statat(&above, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(match (FileType::from_raw_mode(stat.st_mode), &entry.kind) {
        (FileType::Directory, EntryKind::Directory { .. }) => true,
        (FileType::RegularFile, EntryKind::File { size, .. }) => u64::try_from(stat.st_size) == Ok(*size),
        (FileType::Symlink, EntryKind::Symlink { target }) => {
            readlinkat(&above, name, Vec::new())?.to_bytes() == &target[..]
        }
        _ => false,
    })
}

/// Moves in what is not held yet, and puts aside what is in its way.
pub(super) fn apply(apply: &mut Apply<'_>, held: &[bool]) -> Result<(), RestoreError> {
    let manifest = apply.manifest;
    for (entry, held) in manifest.entries().iter().zip(held) {
        let (above, name) = parts(&entry.path);
        // Parents come first, so it is a directory by now.
        let (directory, _) = open_directory_for_change(apply.root.as_fd(), above)
            .map_err(|error| failed("change", apply.path(above), error))?;
        if *held {
            if let EntryKind::File { mode, .. } = entry.kind {
                set_mode(apply, &directory, entry, mode)?;
            }
            continue;
        }
        let in_place = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW);
        let is_directory =
            matches!(&in_place, Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
        let wants_directory = matches!(entry.kind, EntryKind::Directory { .. });
        match in_place {
            Ok(_) if is_directory && wants_directory => continue,
            Ok(_) => apply.put_aside((directory.as_fd(), name), &entry.path)?,
            Err(Errno::NOENT) => {}
            Err(error) => return Err(failed("read", apply.path(&entry.path), error)),
        }
        if wants_directory {
            apply.steps.next()?;
            mkdirat(&directory, name, Mode::RWXU)
                .map_err(|error| failed("write", apply.path(&entry.path), error))?;
        } else {
            let staged =
                open_beneath(apply.staging.directory.as_fd(), above, OFlags::RDONLY | OFlags::DIRECTORY)
                    .map_err(|error| failed("read", apply.path(above), error))?;
            apply.move_in((staged.as_fd(), name), (directory.as_fd(), name), &entry.path)?;
        }
    }
    Ok(())
}

fn set_mode(apply: &Apply<'_>, directory: &OwnedFd, entry: &Entry, mode: u16) -> Result<(), RestoreError> {
    let (_, name) = parts(&entry.path);
    let fail = |error| failed("set the mode of", apply.path(&entry.path), error);
    let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map_err(fail)?;
    if stat.st_mode & 0o777 == u32::from(mode) {
        return Ok(());
    }
    apply.steps.next()?;
    let file = open_beneath(directory.as_fd(), name, OFlags::RDONLY).map_err(fail)?;
    fchmod(&file, Mode::from_raw_mode(u32::from(mode))).map_err(fail)
}

/// Whether all that is held has its mode, too.
pub(super) fn same_modes(root: BorrowedFd<'_>, manifest: &Manifest) -> bool {
    manifest.entries().iter().all(|entry| {
        let Some(mode) = entry.kind.mode() else { return true };
        let (above, name) = parts(&entry.path);
        open_beneath(root, above, OFlags::RDONLY | OFlags::DIRECTORY)
            .and_then(|above| statat(&above, name, AtFlags::SYMLINK_NOFOLLOW))
            .is_ok_and(|stat| stat.st_mode & 0o777 == u32::from(mode))
    })
}
