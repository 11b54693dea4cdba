//! What makes a list of entries well-formed.

use super::path::parts;
use super::{Entry, EntryKind, escape};
use crate::workspace::MAX_CHUNK_BYTES;

/// Entries of a manifest at most.
pub const MAX_ENTRIES: usize = 1 << 20;
/// Bytes of a path at most.
pub const MAX_PATH_BYTES: usize = 4096;
/// Bytes of an encoded manifest at most: it is held in memory.
pub const MAX_MANIFEST_BYTES: u64 = 256 << 20;
/// Bytes of all files together at most. Callers have lower bounds of their own.
pub const MAX_TOTAL_BYTES: u64 = 1 << 42;
/// A kernel stores no longer one.
const MAX_TARGET_BYTES: usize = 4095;

/// A manifest is malformed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the manifest is malformed: {fault} (at {at:?})")]
pub struct ManifestError {
    /// Where: an escaped path, or `line <number>`.
    pub at: String,
    /// What is wrong.
    pub fault: ManifestFault,
}

/// What can be wrong with a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ManifestFault {
    /// It does not begin with the format's name and version.
    #[error("it is of no known format")]
    Header,
    /// A line is not one that this version writes.
    #[error("a line that is not canonical")]
    Line,
    /// It has more than [`MAX_ENTRIES`] entries.
    #[error("too many entries")]
    TooManyEntries,
    /// It has more than [`MAX_MANIFEST_BYTES`] bytes.
    #[error("the manifest is too long")]
    TooLong,
    /// The files have more than [`MAX_TOTAL_BYTES`] bytes.
    #[error("the files are too large")]
    TooManyBytes,
    /// A path that is absolute, empty, leads out, or has an empty segment, `.`, `..` or NUL.
    #[error("a path that is not plainly relative")]
    Path,
    /// A path is longer than [`MAX_PATH_BYTES`].
    #[error("a path that is too long")]
    PathTooLong,
    /// Not sorted by path, or one path twice.
    #[error("entries that are not sorted, or come twice")]
    Order,
    /// A parent is no directory of the list.
    #[error("an entry whose parent is no directory")]
    Parent,
    /// More than the nine permission bits.
    #[error("a mode that is more than permissions")]
    Mode,
    /// Size and number of chunks contradict each other.
    #[error("a size that the chunks cannot have")]
    Chunks,
    /// A link's target is empty, too long or has NUL.
    #[error("a link without a proper target")]
    Target,
}

/// Whether the path is relative and stays inside whatever it is looked up in.
pub(in crate::workspace) fn check_path(path: &[u8]) -> Result<(), ManifestFault> {
    if path.len() > MAX_PATH_BYTES {
        return Err(ManifestFault::PathTooLong);
    }
    let plain = |segment: &[u8]| !matches!(segment, b"" | b"." | b"..");
    if path.contains(&0) || !path.split(|b| *b == b'/').all(plain) {
        return Err(ManifestFault::Path);
    }
    Ok(())
}

/// Takes entries one by one.
#[derive(Default)]
pub(super) struct Checker {
    pub(super) entries: Vec<Entry>,
    bytes: u64,
}

impl Checker {
    pub(super) fn push(&mut self, entry: Entry) -> Result<(), ManifestError> {
        match self.check(&entry) {
            Ok(bytes) => {
                self.bytes = bytes;
                self.entries.push(entry);
                Ok(())
            }
            Err(fault) => Err(ManifestError { at: escape(&entry.path), fault }),
        }
    }

    /// The sum of all sizes, if the entry may follow.
    fn check(&self, entry: &Entry) -> Result<u64, ManifestFault> {
        check_path(&entry.path)?;
        if self.entries.len() == MAX_ENTRIES {
            return Err(ManifestFault::TooManyEntries);
        }
        if self.entries.last().is_some_and(|last| last.path >= entry.path) {
            return Err(ManifestFault::Order);
        }
        if !self.is_directory(parts(&entry.path).0) {
            return Err(ManifestFault::Parent);
        }
        if entry.kind.mode().is_some_and(|mode| mode > 0o777) {
            return Err(ManifestFault::Mode);
        }
        match &entry.kind {
            EntryKind::Directory { .. } => Ok(self.bytes),
            EntryKind::File { size, chunks, .. } => {
                let count = chunks.len() as u64;
                // No chunk is empty, and none larger than the bound.
                if count > *size || count.saturating_mul(MAX_CHUNK_BYTES as u64) < *size {
                    return Err(ManifestFault::Chunks);
                }
                let bytes = self.bytes.saturating_add(*size);
                if bytes > MAX_TOTAL_BYTES { Err(ManifestFault::TooManyBytes) } else { Ok(bytes) }
            }
            EntryKind::Symlink { target } => {
                let proper = !target.is_empty() && target.len() <= MAX_TARGET_BYTES && !target.contains(&0);
                if proper { Ok(self.bytes) } else { Err(ManifestFault::Target) }
            }
        }
    }

    fn is_directory(&self, path: &[u8]) -> bool {
        if path.is_empty() {
            return true;
        }
        // Most entries follow a sibling whose parent was looked up before, so this is short work all the same.
        let found = self.entries.binary_search_by(|entry| entry.path.as_slice().cmp(path));
        found.is_ok_and(|at| matches!(self.entries[at].kind, EntryKind::Directory { .. }))
    }
}
