//! Entries and the list of them.

use outlast_core::WorkspaceRef;

use super::check::Checker;
use super::{ManifestError, text};
use crate::workspace::Digest;

/// Everything in a tree, sorted by path. Every value of this type is well-formed: paths are relative and stay inside,
/// none comes twice, and each parent is a directory of the list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manifest {
    pub(super) entries: Vec<Entry>,
}

/// A directory, file or symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its path from the root, without a leading slash. Any bytes but NUL.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: EntryKind,
}

/// What an entry is. Modes are permission bits (`0o777` and below).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory.
    Directory {
        /// Its permissions.
        mode: u16,
    },
    /// A regular file.
    File {
        /// Its permissions.
        mode: u16,
        /// In bytes.
        size: u64,
        /// Its content, one after the other.
        chunks: Vec<Digest>,
    },
    /// A symbolic link, which is never followed.
    Symlink {
        /// What it says. Any bytes but NUL.
        target: Vec<u8>,
    },
}

impl Manifest {
    /// Sorts and checks the entries.
    pub fn new(mut entries: Vec<Entry>) -> Result<Manifest, ManifestError> {
        entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let mut checker = Checker::default();
        for entry in entries {
            checker.push(entry)?;
        }
        Ok(Manifest { entries: checker.entries })
    }

    /// The entries, sorted by the bytes of their paths.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The canonical bytes.
    pub fn encode(&self) -> Vec<u8> {
        text::encode(&self.entries)
    }

    /// Reads canonical bytes; anything else is refused. The bytes may be hostile.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, ManifestError> {
        text::decode(bytes).map(|entries| Manifest { entries })
    }

    /// Its name.
    pub fn reference(&self) -> WorkspaceRef {
        WorkspaceRef::from_digest(*Digest::of(&self.encode()).bytes())
    }

    /// The chunks of all files, in order, as often as they are used.
    pub(in crate::workspace) fn chunks(&self) -> impl Iterator<Item = Digest> {
        self.entries
            .iter()
            .flat_map(|entry| match &entry.kind {
                EntryKind::File { chunks, .. } => chunks.as_slice(),
                _ => &[],
            })
            .copied()
    }
}

impl EntryKind {
    /// The permissions; none of a symbolic link.
    pub fn mode(&self) -> Option<u16> {
        match self {
            EntryKind::Directory { mode } | EntryKind::File { mode, .. } => Some(*mode),
            EntryKind::Symlink { .. } => None,
        }
    }
}
