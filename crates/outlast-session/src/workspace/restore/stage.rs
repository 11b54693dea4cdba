//! Writing a snapshot into a directory that holds nothing else.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use futures_util::stream::{self, StreamExt};
use rustix::fs::{Mode, OFlags, fchmod, mkdirat, openat, symlinkat};
use rustix::io::Errno;
use tokio::sync::mpsc;

use super::target::Staging;
use super::{RestoreError, RestoreOptions};
use crate::workspace::files::{NOT_FOLLOWED, open_beneath};
use crate::workspace::manifest::{check_path, parts};
use crate::workspace::read::Reader;
use crate::workspace::threads::blocking;
use crate::workspace::{Digest, Entry, EntryKind, MAX_CHUNK_BYTES, escape};

/// Chunks that are read at a time, and wait to be written.
const AHEAD: usize = 16;

/// Reads chunks and writes the entries, which must be sorted. Directories are writable by their owner only, until they
/// get their modes in their last place.
pub(super) async fn fill(
    staging: Staging,
    reader: &Reader,
    entries: Vec<Entry>,
    options: &RestoreOptions,
) -> Result<Staging, RestoreError> {
    let chunks: Vec<(Digest, u64)> = entries.iter().flat_map(chunks_of).collect();
    let (sender, mut receiver) = mpsc::channel(1);
    let (max_entries, max_bytes) = (options.max_entries, options.max_bytes);
    let writing = blocking(move || {
        let mut stage = Stage::new(staging.directory.as_fd(), max_entries, max_bytes);
        for entry in &entries {
            stage.entry(entry, &mut || receiver.blocking_recv())?;
        }
        drop(stage);
        Ok(staging)
    });
    let reading = async move {
        let mut bodies = stream::iter(chunks).map(|(digest, max)| reader.chunk(digest, max)).buffered(AHEAD);
        while let Some(body) = bodies.next().await {
            if sender.send(body?).await.is_err() {
                // The writer has given up, and says why.
                break;
            }
        }
        Ok::<_, RestoreError>(())
    };
    let (written, read) = tokio::join!(writing, reading);
    // Where nothing more could be read, the writer has nothing to say that matters.
    read?;
    written.map_err(|died| RestoreError::Internal { message: died.to_string() })?
}

fn chunks_of(entry: &Entry) -> impl Iterator<Item = (Digest, u64)> {
    let (size, chunks) = match &entry.kind {
        EntryKind::File { size, chunks, .. } => (*size, chunks.as_slice()),
        _ => (0, &[][..]),
    };
    chunks.iter().map(move |digest| (*digest, size.min(MAX_CHUNK_BYTES as u64)))
}

/// Makes entries relative to an open directory. Trusts no path: each is checked, and no link is followed.
pub(super) struct Stage<'s> {
    root: BorrowedFd<'s>,
    entries_left: usize,
    bytes_left: u64,
    max: (usize, u64),
    /// The directory that was used last.
    parent: Option<(Vec<u8>, OwnedFd)>,
}

impl<'s> Stage<'s> {
    pub(super) fn new(root: BorrowedFd<'s>, max_entries: usize, max_bytes: u64) -> Stage<'s> {
        let max = (max_entries, max_bytes);
        Stage { root, entries_left: max_entries, bytes_left: max_bytes, max, parent: None }
    }

    /// Makes one entry; a file gets its chunks one after the other from `next`.
    pub(super) fn entry(
        &mut self,
        entry: &Entry,
        next: &mut dyn FnMut() -> Option<Vec<u8>>,
    ) -> Result<(), RestoreError> {
        let failed = |message: String| RestoreError::Write {
            what: "write",
            path: PathBuf::from(escape(&entry.path)),
            message,
        };
        check_path(&entry.path).map_err(|fault| failed(fault.to_string()))?;
        let (max_entries, max_bytes) = (self.max.0 as u64, self.max.1);
        let too_many = |what, max: u64| RestoreError::TooLarge { what, found: max.saturating_add(1), max };
        self.entries_left =
            self.entries_left.checked_sub(1).ok_or_else(|| too_many("entries", max_entries))?;
        let mut bytes_left = self.bytes_left;
        let (directory, name) = parts(&entry.path);
        let of_system = |error: Errno| failed(error.to_string());
        let parent = self.parent(directory).map_err(of_system)?;
        match &entry.kind {
            EntryKind::Directory { .. } => mkdirat(parent, name, Mode::RWXU).map_err(of_system),
            EntryKind::Symlink { target } => symlinkat(&target[..], parent, name).map_err(of_system),
            EntryKind::File { mode, size, chunks } => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | NOT_FOLLOWED;
                let file = openat(parent, name, flags, Mode::RUSR | Mode::WUSR).map_err(of_system)?;
                let mut file = File::from(file);
                let mut left = *size;
                for _ in chunks {
                    let chunk = next().ok_or_else(|| failed("nothing more could be read".to_owned()))?;
                    let length = chunk.len() as u64;
                    left = left
                        .checked_sub(length)
                        .ok_or_else(|| failed("its chunks are too large".to_owned()))?;
                    bytes_left =
                        bytes_left.checked_sub(length).ok_or_else(|| too_many("bytes", max_bytes))?;
                    file.write_all(&chunk).map_err(|error| failed(error.to_string()))?;
                }
                if left > 0 {
                    return Err(failed("its chunks are too small".to_owned()));
                }
                self.bytes_left = bytes_left;
                // Only permissions: a manifest cannot make a program run as somebody else.
                fchmod(&file, Mode::from_raw_mode(u32::from(*mode & 0o777))).map_err(of_system)
            }
        }
    }

    fn parent(&mut self, path: &[u8]) -> Result<BorrowedFd<'_>, Errno> {
        if path.is_empty() {
            return Ok(self.root);
        }
        let opened = match self.parent.take() {
            Some(parent) if parent.0 == path => parent,
            _ => (path.to_vec(), open_beneath(self.root, path, OFlags::RDONLY | OFlags::DIRECTORY)?),
        };
        Ok(self.parent.insert(opened).1.as_fd())
    }
}
