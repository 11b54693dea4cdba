//! What a snapshot consists of, and what it cost.

use outlast_core::WorkspaceRef;
use serde::Serialize;

/// A snapshot that is stored, durably.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// Its name.
    #[serde(rename = "ref")]
    pub reference: WorkspaceRef,
    /// Regular files in it.
    pub files: u64,
    /// Directories in it, without the root.
    pub directories: u64,
    /// Symbolic links in it.
    pub symlinks: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Files that were read.
    pub hashed_files: u64,
    /// Bytes that were read of them.
    pub hashed_bytes: u64,
    /// Objects that were written.
    pub uploaded_objects: u64,
    /// Their bytes, compressed.
    pub uploaded_bytes: u64,
    /// Entries that a pattern excludes. A directory counts as one, whatever it holds.
    pub excluded: u64,
    /// What is not in the snapshot though nothing excludes it, or not surely as it was.
    pub skipped: Vec<Skipped>,
    /// Whether the tree changed meanwhile in a way that was noticed: the snapshot may be no state that it ever had.
    pub changed: bool,
}

/// Something that a snapshot does not hold as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Skipped {
    /// Its path, escaped.
    pub path: String,
    /// Why.
    #[serde(flatten)]
    pub reason: SkipReason,
}

/// Why a snapshot does not hold something as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "reason")]
pub enum SkipReason {
    /// A socket.
    Socket,
    /// A named pipe.
    Fifo,
    /// A device, or of a kind that is not known.
    Device,
    /// It cannot be read. A directory is missing with everything in it.
    Unreadable {
        /// What is wrong, for people.
        message: String,
    },
    /// It was there, and then was not, or was something else.
    Vanished,
    /// It changed each time that it was read. It is in the snapshot as it was read last.
    ChangedWhileRead,
    /// Its path is longer than a manifest takes.
    PathTooLong,
}
