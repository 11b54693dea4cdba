//! Everything before the first object: the walk, and what the cache knows.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cache::{self, Cache, Cached, Writer};
use super::{Excludes, SnapshotError, SnapshotOptions};
use crate::workspace::files::{Found, FoundKind, Limits, WalkError, Walked, open_root, walk};
use crate::workspace::threads::Stop;
use crate::workspace::{Digest, MAX_ENTRIES, escape};

/// What is known before anything is read.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The canonical path.
    pub(super) path: PathBuf,
    pub(super) root: Arc<OwnedFd>,
    pub(super) walked: Walked,
    /// For each entry, what is known of its content; none of what must be read.
    pub(super) known: Vec<Option<Vec<Digest>>>,
    writer: Option<Writer>,
}

/// Blocks. `store` is a directory that must not lie within the workspace.
pub(super) fn prepare(
    root: &Path,
    options: &SnapshotOptions,
    store: Option<&Path>,
    stop: &Stop,
) -> Result<Prepared, SnapshotError> {
    let unreadable =
        |error: std::io::Error| SnapshotError::Root { root: root.to_owned(), message: error.to_string() };
    let excludes = Excludes::new(options)?;
    let path = root.canonicalize().map_err(unreadable)?;
    let directory = open_root(&path).map_err(|error| unreadable(error.into()))?;
    for inside in store.into_iter().chain(options.cache.as_deref()) {
        if canonical(inside).starts_with(&path) {
            return Err(SnapshotError::Overlap { root: path, inside: inside.to_owned() });
        }
    }
    let cache = options.cache.as_deref().map(|file| cache::load(file, &path)).unwrap_or_default();
    // Before the walk: what is read has to be older than this time.
    let writer = options.cache.as_deref().and_then(Writer::begin);
    let limits = Limits { entries: options.max_entries.min(MAX_ENTRIES), bytes: options.max_bytes };
    let mut walked = walk(directory.as_fd(), &excludes, limits, stop).map_err(|error| match error {
        WalkError::Root(error) => unreadable(error.into()),
        WalkError::TooManyEntries => SnapshotError::TooLarge { what: "entries", max: limits.entries as u64 },
        WalkError::TooManyBytes => SnapshotError::TooLarge { what: "bytes", max: limits.bytes },
        WalkError::Patterns { path, reason } => SnapshotError::Patterns { place: path, message: reason },
        WalkError::Stopped => SnapshotError::Internal { message: "nobody waits for it".to_owned() },
    })?;
    if let Some(Writer { clock: (device, time), .. }) = &writer
        && let Some(newest) = walked.newest.get_mut(device)
    {
        *newest = (*newest).max(*time);
    }
    let known = walked.entries.iter().map(|found| lookup(&cache, found)).collect();
    Ok(Prepared { path, root: Arc::new(directory), walked, known, writer })
}

fn lookup(cache: &Cache, found: &Found) -> Option<Vec<Digest>> {
    let FoundKind::File(stat) = &found.kind else { return None };
    // Not worth a look: it is read in no time.
    if stat.size == 0 {
        return Some(Vec::new());
    }
    let cached = cache.get(&escape(&found.path))?;
    (cached.stat == *stat).then(|| cached.chunks.clone())
}

/// The real path, also of what is not there yet.
fn canonical(path: &Path) -> PathBuf {
    let Ok(absolute) = std::path::absolute(path) else { return path.to_owned() };
    for above in absolute.ancestors() {
        if let (Ok(real), Ok(rest)) = (above.canonicalize(), absolute.strip_prefix(above)) {
            return real.join(rest);
        }
    }
    absolute
}

impl Prepared {
    /// Writes the cache for the next snapshot. Blocks. `read` holds what was read steadily.
    pub(super) fn finish(self, mut read: HashMap<usize, Cached>) {
        let Some(writer) = self.writer else { return };
        let mut cache = Cache::with_capacity(self.walked.entries.len());
        for (at, (found, known)) in self.walked.entries.iter().zip(self.known).enumerate() {
            let FoundKind::File(stat) = &found.kind else { continue };
            let cached = match (read.remove(&at), known) {
                (Some(cached), _) if certain(&self.walked.newest, &cached) => cached,
                (None, Some(chunks)) if stat.size > 0 => Cached { stat: *stat, chunks },
                _ => continue,
            };
            cache.insert(escape(&found.path), cached);
        }
        writer.finish(&self.path, &cache);
    }
}

/// Whether any write after the reading gives the file another time.
fn certain(newest: &HashMap<u64, i128>, cached: &Cached) -> bool {
    let stat = &cached.stat;
    newest.get(&stat.device).is_some_and(|clock| stat.changed < *clock && stat.modified < *clock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::files::FileStat;

    /// The clock stood at 100 before the file was read: whatever is written later bears 100 or more.
    #[test]
    fn only_what_is_older_than_the_clock_is_certain() {
        let newest = HashMap::from([(1, 100)]);
        for (device, modified, changed, expected) in [
            (1, 99, 99, true),
            (1, 0, 99, true),
            (1, -1, 99, true),
            (1, 99, 100, false),
            (1, 99, 101, false),
            (1, 100, 99, false),
            (1, 1000, 99, false),
            (1, 100, 100, false),
            (2, 99, 99, false),
        ] {
            let stat = FileStat { device, inode: 1, size: 1, mode: 0o644, modified, changed };
            let cached = Cached { stat, chunks: Vec::new() };
            assert_eq!(certain(&newest, &cached), expected, "{stat:?}");
        }
    }
}
