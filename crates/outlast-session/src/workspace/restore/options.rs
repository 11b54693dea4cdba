//! How a snapshot is restored, and what came of it.

use std::path::PathBuf;

use outlast_core::WorkspaceRef;
use serde::{Deserialize, Serialize};

use crate::workspace::MAX_ENTRIES;

/// What becomes of what the snapshot does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestoreMode {
    /// It is put aside: the directory holds the snapshot and nothing else.
    Exact,
    /// It stays. Put aside is only what the snapshot holds otherwise.
    Overlay,
}

/// How a snapshot is restored.
#[derive(Debug, Clone)]
pub struct RestoreOptions {
    /// What becomes of what the snapshot does not hold.
    pub mode: RestoreMode,
    /// Entries that the snapshot may have.
    pub max_entries: usize,
    /// Bytes that its files may have.
    pub max_bytes: u64,
    /// The time in milliseconds since 1970: names of what is made beside the destination have it.
    pub now_ms: u64,
    /// Threads that verify. None: by the machine.
    pub threads: Option<usize>,
}

impl RestoreOptions {
    /// Exact, up to 2^20 entries and 8 GiB.
    pub fn new(now_ms: u64) -> RestoreOptions {
        RestoreOptions {
            mode: RestoreMode::Exact,
            max_entries: MAX_ENTRIES,
            max_bytes: 8 << 30,
            now_ms,
            threads: None,
        }
    }
}

/// A snapshot that was restored, durably.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Restored {
    /// Its name.
    #[serde(rename = "ref")]
    pub reference: WorkspaceRef,
    /// Regular files in it.
    pub files: u64,
    /// Directories in it, without the root.
    pub directories: u64,
    /// Symbolic links in it.
    pub symlinks: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// Whether the destination was that already, and nothing was touched.
    pub unchanged: bool,
    /// Files and links that were written.
    pub written: u64,
    /// Where what was in the way lies now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aside: Option<PathBuf>,
    /// How many entries were moved there, each with everything in it.
    pub put_aside: u64,
}
