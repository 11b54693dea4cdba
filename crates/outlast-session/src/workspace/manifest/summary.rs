//! Manifests for people and for command lines.

use outlast_core::WorkspaceRef;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::{Entry, EntryKind, Manifest, escape};

/// What a snapshot holds, in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestSummary {
    /// Its name.
    #[serde(rename = "ref")]
    pub reference: WorkspaceRef,
    /// Regular files.
    pub files: u64,
    /// Directories, without the root.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Chunks of all files, one that is used twice counted once.
    pub chunks: u64,
}

impl Manifest {
    /// Counts.
    pub fn summary(&self) -> ManifestSummary {
        let mut summary = ManifestSummary {
            reference: self.reference(),
            files: 0,
            directories: 0,
            symlinks: 0,
            bytes: 0,
            chunks: self.chunks().collect::<std::collections::HashSet<_>>().len() as u64,
        };
        for entry in &self.entries {
            match &entry.kind {
                EntryKind::Directory { .. } => summary.directories += 1,
                EntryKind::Symlink { .. } => summary.symlinks += 1,
                EntryKind::File { size, .. } => {
                    summary.files += 1;
                    summary.bytes += size;
                }
            }
        }
        summary
    }
}

impl Serialize for Entry {
    /// `path` and `target` are escaped, `mode` is octal; chunks are left out.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut out = to.serialize_struct("Entry", 4)?;
        out.serialize_field("path", &escape(&self.path))?;
        let (kind, size, target) = match &self.kind {
            EntryKind::Directory { .. } => ("directory", None, None),
            EntryKind::File { size, .. } => ("file", Some(size), None),
            EntryKind::Symlink { target } => ("symlink", None, Some(escape(target))),
        };
        out.serialize_field("kind", kind)?;
        if let Some(mode) = self.kind.mode() {
            out.serialize_field("mode", &format!("{mode:03o}"))?;
        }
        if let Some(size) = size {
            out.serialize_field("size", size)?;
        }
        if let Some(target) = target {
            out.serialize_field("target", &target)?;
        }
        out.end()
    }
}
