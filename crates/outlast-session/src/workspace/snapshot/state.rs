//! What a snapshot knows on its way.

use std::collections::{HashMap, HashSet};

use outlast_core::WorkspaceRef;

use super::cache::Cached;
use super::prepare::Prepared;
use super::upload::Uploaded;
use super::{Progress, SkipReason, Skipped, Snapshot, SnapshotError, SnapshotOptions};
use crate::workspace::files::{FoundKind, HashFailed, Hashed};
use crate::workspace::threads::default_threads;
use crate::workspace::{Digest, Entry, EntryKind, Manifest, escape};

pub(super) fn is_file(kind: &FoundKind) -> bool {
    matches!(kind, FoundKind::File(_))
}

/// What was read of a file.
pub(super) struct Read {
    mode: u16,
    size: u64,
    chunks: Vec<Digest>,
}

/// All that is known of the tree, as a manifest.
pub(super) fn manifest(
    prepared: &Prepared,
    read: &HashMap<usize, Read>,
    dropped: &HashSet<usize>,
) -> Result<Manifest, SnapshotError> {
    let mut entries = Vec::with_capacity(prepared.walked.entries.len());
    for (at, (found, known)) in prepared.walked.entries.iter().zip(&prepared.known).enumerate() {
        if dropped.contains(&at) {
            continue;
        }
        let kind = match (&found.kind, read.get(&at), known) {
            (FoundKind::Directory { mode }, ..) => EntryKind::Directory { mode: *mode },
            (FoundKind::Symlink { target }, ..) => EntryKind::Symlink { target: target.clone() },
            (FoundKind::File(_), Some(Read { mode, size, chunks }), _) => {
                EntryKind::File { mode: *mode, size: *size, chunks: chunks.clone() }
            }
            (FoundKind::File(stat), None, Some(chunks)) => {
                EntryKind::File { mode: stat.mode, size: stat.size, chunks: chunks.clone() }
            }
            (FoundKind::File(_), None, None) => {
                return Err(SnapshotError::Internal { message: "a thread has died".to_owned() });
            }
        };
        entries.push(Entry { path: found.path.clone(), kind });
    }
    Ok(Manifest::new(entries)?)
}

pub(super) struct Run {
    pub(super) prepared: Prepared,
    pub(super) options: SnapshotOptions,
    pub(super) threads: usize,
    pub(super) progress: Progress,
    /// What was read, for the manifest.
    pub(super) read_all: HashMap<usize, Read>,
    /// The same, for the cache: without what changed meanwhile.
    pub(super) read: HashMap<usize, Cached>,
    /// Files that went away.
    pub(super) dropped: HashSet<usize>,
    pub(super) skipped: Vec<Skipped>,
    pub(super) hashed_bytes: u64,
    pub(super) changed: bool,
    pub(super) uploaded: Uploaded,
}

impl Run {
    pub(super) fn new(mut prepared: Prepared, options: &SnapshotOptions) -> Run {
        let skipped = std::mem::take(&mut prepared.walked.skipped);
        let changed = skipped.iter().any(|skipped| skipped.reason == SkipReason::Vanished);
        let mut progress = Progress { files: 0, bytes: 0, of_files: 0, of_bytes: 0 };
        for (found, known) in prepared.walked.entries.iter().zip(&prepared.known) {
            let FoundKind::File(stat) = &found.kind else { continue };
            progress.of_files += 1;
            progress.of_bytes += stat.size;
            if known.is_some() {
                progress.files += 1;
                progress.bytes += stat.size;
            }
        }
        let run = Run {
            prepared,
            options: options.clone(),
            threads: options.threads.unwrap_or_else(default_threads).max(1),
            progress,
            read_all: HashMap::new(),
            read: HashMap::new(),
            dropped: HashSet::new(),
            skipped,
            hashed_bytes: 0,
            changed,
            uploaded: Uploaded::default(),
        };
        run.tell();
        run
    }

    fn tell(&self) {
        if let Some(progress) = &self.options.progress {
            progress(self.progress);
        }
    }

    /// Files whose content is known and not stored are read all the same.
    pub(super) fn forget_lost(&mut self, known: &HashMap<Digest, bool>) {
        for (found, chunks) in self.prepared.walked.entries.iter().zip(&mut self.prepared.known) {
            let lost = |chunks: &Vec<Digest>| chunks.iter().any(|chunk| known.get(chunk) == Some(&false));
            if chunks.as_ref().is_some_and(lost) {
                *chunks = None;
                if let FoundKind::File(stat) = &found.kind {
                    self.progress.files -= 1;
                    self.progress.bytes -= stat.size;
                }
            }
        }
    }

    pub(super) fn to_read(&self) -> Vec<(usize, Vec<u8>)> {
        let entries = self.prepared.walked.entries.iter().zip(&self.prepared.known).enumerate();
        let unknown = entries.filter(|(_, (found, known))| known.is_none() && is_file(&found.kind));
        unknown.map(|(at, (found, _))| (at, found.path.clone())).collect()
    }

    pub(super) fn file(
        &mut self,
        at: usize,
        hashed: Result<Hashed, HashFailed>,
    ) -> Result<(), SnapshotError> {
        let path = escape(&self.prepared.walked.entries[at].path);
        self.progress.files += 1;
        match hashed {
            Ok(Hashed { stat, size, chunks, unsteady }) => {
                self.hashed_bytes += size;
                self.progress.bytes += size;
                if unsteady {
                    self.changed = true;
                    self.skipped.push(Skipped { path, reason: SkipReason::ChangedWhileRead });
                } else {
                    self.read.insert(at, Cached { stat, chunks: chunks.clone() });
                }
                self.read_all.insert(at, Read { mode: stat.mode, size, chunks });
            }
            Err(HashFailed::TooLarge) => return Err(self.too_many_bytes()),
            Err(HashFailed::Gone | HashFailed::Replaced) => {
                self.changed = true;
                self.drop_file(at, path, SkipReason::Vanished);
            }
            Err(HashFailed::Unreadable(error)) => {
                self.drop_file(at, path, SkipReason::Unreadable { message: error.to_string() });
            }
            Err(HashFailed::Stopped) => {
                return Err(SnapshotError::Internal { message: "nobody waits for it".to_owned() });
            }
        }
        self.tell();
        Ok(())
    }

    fn drop_file(&mut self, at: usize, path: String, reason: SkipReason) {
        self.dropped.insert(at);
        self.skipped.push(Skipped { path, reason });
    }

    pub(super) fn too_many_bytes(&self) -> SnapshotError {
        SnapshotError::TooLarge { what: "bytes", max: self.options.max_bytes }
    }

    pub(super) fn snapshot(&mut self, reference: WorkspaceRef, manifest: &Manifest) -> Snapshot {
        let mut skipped = std::mem::take(&mut self.skipped);
        skipped.sort_by(|a, b| a.path.cmp(&b.path));
        let mut snapshot = Snapshot {
            reference,
            files: 0,
            directories: 0,
            symlinks: 0,
            bytes: 0,
            hashed_files: self.read_all.len() as u64,
            hashed_bytes: self.hashed_bytes,
            uploaded_objects: self.uploaded.objects,
            uploaded_bytes: self.uploaded.bytes,
            excluded: self.prepared.walked.excluded,
            skipped,
            changed: self.changed,
        };
        for entry in manifest.entries() {
            match entry.kind {
                EntryKind::Directory { .. } => snapshot.directories += 1,
                EntryKind::Symlink { .. } => snapshot.symlinks += 1,
                EntryKind::File { size, .. } => {
                    snapshot.files += 1;
                    snapshot.bytes += size;
                }
            }
        }
        snapshot
    }
}
