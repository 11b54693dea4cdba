//! How a snapshot is made.

use std::path::PathBuf;
use std::sync::Arc;

use outlast_core::WorkspaceRef;

use crate::workspace::MAX_ENTRIES;

/// Told of progress, on whatever thread, and often: it must be quick.
pub type ProgressFn = Arc<dyn Fn(Progress) + Send + Sync>;

/// How far a snapshot has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Files whose content is known.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Files that the walk found.
    pub of_files: u64,
    /// Bytes of them at that time.
    pub of_bytes: u64,
}

/// How a snapshot is made.
#[derive(Clone)]
pub struct SnapshotOptions {
    /// A snapshot that is known to be live and to stay so meanwhile: what it holds need not be stored again. The one
    /// before, usually.
    pub base: Option<WorkspaceRef>,
    /// Where it is kept what files held when they were read last, so that only those are read again that have changed.
    /// A file of this workspace's own, outside of it. A missing, damaged or foreign one costs time only.
    pub cache: Option<PathBuf>,
    /// Patterns as in `.gitignore`, relative to the root: what is not to be in the snapshot. `!` takes an exclusion
    /// back, also one of [`super::SECRETS`].
    pub exclude: Vec<String>,
    /// Takes also what [`super::SECRETS`] excludes.
    pub include_secrets: bool,
    /// Excludes also what the tree's `.gitignore` files exclude.
    pub gitignore: bool,
    /// Entries at most; no more than [`MAX_ENTRIES`] count.
    pub max_entries: usize,
    /// Bytes of all files at most.
    pub max_bytes: u64,
    /// Threads that read and hash; as many again compress. None: by the machine.
    pub threads: Option<usize>,
    /// Told of progress.
    pub progress: Option<ProgressFn>,
}

impl Default for SnapshotOptions {
    fn default() -> Self {
        SnapshotOptions {
            base: None,
            cache: None,
            exclude: Vec::new(),
            include_secrets: false,
            gitignore: false,
            max_entries: MAX_ENTRIES,
            max_bytes: 8 << 30,
            threads: None,
            progress: None,
        }
    }
}

impl std::fmt::Debug for SnapshotOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SnapshotOptions")
            .field("base", &self.base)
            .field("cache", &self.cache)
            .field("exclude", &self.exclude)
            .field("include_secrets", &self.include_secrets)
            .field("gitignore", &self.gitignore)
            .field("max_entries", &self.max_entries)
            .field("max_bytes", &self.max_bytes)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}
