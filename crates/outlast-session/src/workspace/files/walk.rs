//! Finding everything in a tree.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, FileType, OFlags, readlinkat, statat};
use rustix::io::Errno;

use super::stat::{file_type, permissions};
use super::{FileStat, names, open_beneath};
use crate::workspace::snapshot::{Excludes, Nested, SkipReason, Skipped};
use crate::workspace::threads::Stop;
use crate::workspace::{MAX_PATH_BYTES, escape};

/// What a walk may find at most.
#[derive(Debug, Clone, Copy)]
pub(in crate::workspace) struct Limits {
    pub(in crate::workspace) entries: usize,
    pub(in crate::workspace) bytes: u64,
}

/// Everything in a tree.
#[derive(Debug, Default)]
pub(in crate::workspace) struct Walked {
    /// Sorted by path.
    pub(in crate::workspace) entries: Vec<Found>,
    /// Entries that a pattern excludes. What lies in such a directory was not looked at.
    pub(in crate::workspace) excluded: u64,
    pub(in crate::workspace) skipped: Vec<Skipped>,
    /// The newest change on each device: its clock had come so far.
    pub(in crate::workspace) newest: HashMap<u64, i128>,
}

/// Something in a tree.
#[derive(Debug)]
pub(in crate::workspace) struct Found {
    pub(in crate::workspace) path: Vec<u8>,
    pub(in crate::workspace) kind: FoundKind,
}

#[derive(Debug)]
pub(in crate::workspace) enum FoundKind {
    Directory { mode: u16 },
    File(FileStat),
    Symlink { target: Vec<u8> },
}

#[derive(Debug)]
pub(in crate::workspace) enum WalkError {
    /// The root cannot be read.
    Root(Errno),
    TooManyEntries,
    TooManyBytes,
    /// A file with patterns cannot be used.
    Patterns {
        path: String,
        reason: String,
    },
    Stopped,
}

/// Walks through a tree. What cannot be read is skipped and reported, except for the root.
pub(in crate::workspace) fn walk(
    root: BorrowedFd<'_>,
    excludes: &Excludes,
    limits: Limits,
    stop: &Stop,
) -> Result<Walked, WalkError> {
    let mut walk = Walk {
        root,
        excludes,
        limits,
        bytes: 0,
        walked: Walked::default(),
        waiting: vec![(Vec::new(), Nested::default())],
        unreadable: HashSet::new(),
    };
    // Not by recursion, and with one open directory at a time: the depth is whoever's who made the tree.
    while let Some((path, nested)) = walk.waiting.pop() {
        if stop.is_set() {
            return Err(WalkError::Stopped);
        }
        walk.directory(&path, nested)?;
    }
    let Walk { mut walked, unreadable, .. } = walk;
    if !unreadable.is_empty() {
        walked.entries.retain(|found| !unreadable.contains(&found.path));
    }
    walked.entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    walked.skipped.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(walked)
}

struct Walk<'w> {
    root: BorrowedFd<'w>,
    excludes: &'w Excludes,
    limits: Limits,
    bytes: u64,
    walked: Walked,
    waiting: Vec<(Vec<u8>, Nested)>,
    unreadable: HashSet<Vec<u8>>,
}

impl Walk<'_> {
    fn directory(&mut self, path: &[u8], nested: Nested) -> Result<(), WalkError> {
        let listed = open_beneath(self.root, path, OFlags::RDONLY | OFlags::DIRECTORY)
            .and_then(|directory| names(directory.as_fd()).map(|names| (directory, names)));
        let (directory, names) = match listed {
            Ok(listed) => listed,
            Err(error) if path.is_empty() => return Err(WalkError::Root(error)),
            Err(error) => {
                // It was recorded when its parent was read. Without its content it would look empty.
                self.unreadable.insert(path.to_vec());
                self.skip(path, error);
                return Ok(());
            }
        };
        let nested = self.excludes.enter(directory.as_fd(), path, nested)?;
        for name in names {
            let child = if path.is_empty() { name.clone() } else { [path, b"/", &name[..]].concat() };
            self.child(directory.as_fd(), &name, child, &nested)?;
        }
        Ok(())
    }

    fn child(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        path: Vec<u8>,
        nested: &Nested,
    ) -> Result<(), WalkError> {
        let stat = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(error) => {
                self.skip(&path, error);
                return Ok(());
            }
        };
        let kind = file_type(&stat);
        if self.excludes.excluded(&path, kind == FileType::Directory, nested) {
            self.walked.excluded += 1;
            return Ok(());
        }
        if path.len() > MAX_PATH_BYTES {
            self.report(&path, SkipReason::PathTooLong);
            return Ok(());
        }
        let known = FileStat::of(&stat);
        let newest = self.walked.newest.entry(known.device).or_insert(known.changed);
        *newest = known.changed.max(*newest);
        let kind = match kind {
            FileType::Directory => {
                self.waiting.push((path.clone(), nested.clone()));
                FoundKind::Directory { mode: permissions(&stat) }
            }
            FileType::RegularFile => {
                self.bytes = self.bytes.saturating_add(known.size);
                if self.bytes > self.limits.bytes {
                    return Err(WalkError::TooManyBytes);
                }
                FoundKind::File(known)
            }
            FileType::Symlink => match readlinkat(directory, name, Vec::new()) {
                Ok(target) => FoundKind::Symlink { target: target.into_bytes() },
                Err(error) => {
                    self.skip(&path, error);
                    return Ok(());
                }
            },
            FileType::Socket => return self.special(&path, SkipReason::Socket),
            FileType::Fifo => return self.special(&path, SkipReason::Fifo),
            _ => return self.special(&path, SkipReason::Device),
        };
        if self.walked.entries.len() == self.limits.entries {
            return Err(WalkError::TooManyEntries);
        }
        self.walked.entries.push(Found { path, kind });
        Ok(())
    }

    fn special(&mut self, path: &[u8], reason: SkipReason) -> Result<(), WalkError> {
        self.report(path, reason);
        Ok(())
    }

    fn skip(&mut self, path: &[u8], error: Errno) {
        let reason = match error {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::INVAL => SkipReason::Vanished,
            error => SkipReason::Unreadable { message: std::io::Error::from(error).to_string() },
        };
        self.report(path, reason);
    }

    fn report(&mut self, path: &[u8], reason: SkipReason) {
        self.walked.skipped.push(Skipped { path: escape(path), reason });
    }
}
