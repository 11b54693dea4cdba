//! Changing directories that may be read-only, and moving without replacing.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, fchmod, fstat, renameat, renameat_with, statat};
use rustix::io::Errno;

use super::open_beneath;
use super::stat::permissions;

/// What its owner needs to change a directory.
pub(in crate::workspace) const OWNER_ALL: u16 = 0o700;

/// Opens a directory, and gives its owner the right to change it where that is missing. Returns the mode that it had.
pub(in crate::workspace) fn open_directory_for_change(
    root: BorrowedFd<'_>,
    path: &[u8],
) -> Result<(OwnedFd, u16), Errno> {
    let directory = open_beneath(root, path, OFlags::RDONLY | OFlags::DIRECTORY)?;
    let mode = permissions(&fstat(&directory)?);
    if mode & OWNER_ALL != OWNER_ALL {
        fchmod(&directory, Mode::from_raw_mode(u32::from(mode | OWNER_ALL)))?;
    }
    Ok((directory, mode))
}

/// Moves; fails with `EEXIST` where something is in its new place. A directory's mode does not hinder it.
pub(in crate::workspace) fn rename_new(
    from: (BorrowedFd<'_>, &[u8]),
    to: (BorrowedFd<'_>, &[u8]),
) -> Result<(), Errno> {
    match rename(from, to) {
        // A directory that gets another parent is written to, for its `..`.
        Err(Errno::ACCESS) => {
            let Ok((directory, mode)) = open_directory_for_change(from.0, from.1) else {
                return Err(Errno::ACCESS);
            };
            let moved = rename(from, to);
            fchmod(&directory, Mode::from_raw_mode(u32::from(mode)))?;
            moved
        }
        answer => answer,
    }
}

fn rename(from: (BorrowedFd<'_>, &[u8]), to: (BorrowedFd<'_>, &[u8])) -> Result<(), Errno> {
    match renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
        // Not every file system has it.
        Err(Errno::INVAL | Errno::NOSYS) => match statat(to.0, to.1, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => renameat(from.0, from.1, to.0, to.1),
            Ok(_) => Err(Errno::EXIST),
            Err(error) => Err(error),
        },
        answer => answer,
    }
}
