//! Removing a tree that this program made.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, FileType, OFlags, statat, unlinkat};
use rustix::io::Errno;

use super::stat::file_type;
use super::{names, open_beneath};
use crate::workspace::manifest::parts;

/// Removes a directory with everything in it. Links are removed, not followed. Safe to repeat.
pub(in crate::workspace) fn remove_tree(parent: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
    // Not by recursion: the depth is whoever's who made the tree.
    let mut directories = vec![name.to_vec()];
    let mut next = 0;
    while let Some(path) = directories.get(next).cloned() {
        next += 1;
        let directory = open_beneath(parent, &path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        for child in names(directory.as_fd())? {
            let stat = statat(&directory, &child[..], AtFlags::SYMLINK_NOFOLLOW)?;
            if file_type(&stat) == FileType::Directory {
                directories.push([&path, &b"/"[..], &child].concat());
            } else {
                unlinkat(&directory, &child[..], AtFlags::empty())?;
            }
        }
    }
    for path in directories.iter().rev() {
        let (above, name) = parts(path);
        let above = open_beneath(parent, above, OFlags::RDONLY | OFlags::DIRECTORY)?;
        unlinkat(&above, name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}
