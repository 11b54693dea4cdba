//! Is this directory the snapshot already?

use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::workspace::files::{Found, FoundKind, Limits, Walked, hash_file, walk};
use crate::workspace::snapshot::Excludes;
use crate::workspace::threads::Stop;
use crate::workspace::{Entry, EntryKind, Manifest};

/// Whether the tree is what the manifest says, and nothing else. What cannot be read is not.
pub(super) fn same_tree(root: BorrowedFd<'_>, manifest: &Manifest, threads: usize, stop: &Stop) -> bool {
    let entries = manifest.entries();
    let bytes = entries
        .iter()
        .map(|entry| if let EntryKind::File { size, .. } = entry.kind { size } else { 0 })
        .sum();
    let limits = Limits { entries: entries.len(), bytes };
    let Ok(Walked { entries: found, skipped, .. }) = walk(root, &Excludes::none(), limits, stop) else {
        return false;
    };
    let alike =
        |(found, entry): (&Found, &Entry)| found.path == entry.path && same_kind(&found.kind, &entry.kind);
    if !skipped.is_empty() || found.len() != entries.len() || !found.iter().zip(entries).all(alike) {
        return false;
    }
    let files: Vec<&Entry> =
        entries.iter().filter(|entry| matches!(entry.kind, EntryKind::File { .. })).collect();
    let different = AtomicBool::new(false);
    each_same(root, &files, threads, &|_, same| {
        if !same {
            different.store(true, Ordering::Relaxed);
        }
        if different.load(Ordering::Relaxed) || stop.is_set() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    !different.into_inner() && !stop.is_set()
}

fn same_kind(found: &FoundKind, wanted: &EntryKind) -> bool {
    match (found, wanted) {
        (FoundKind::Directory { mode }, EntryKind::Directory { mode: wanted }) => mode == wanted,
        (FoundKind::File(stat), EntryKind::File { mode, size, .. }) => {
            stat.mode == *mode && stat.size == *size
        }
        (FoundKind::Symlink { target }, EntryKind::Symlink { target: wanted }) => target == wanted,
        _ => false,
    }
}

/// Tells of each of these files, by index and on several threads, whether its content is the wanted one; until it is
/// told to stop.
pub(super) fn each_same(
    root: BorrowedFd<'_>,
    files: &[&Entry],
    threads: usize,
    tell: &(dyn Fn(usize, bool) -> ControlFlow<()> + Sync),
) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(files.len()) {
            scope.spawn(|| {
                let mut buffer = Vec::new();
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(entry) = files.get(at) else { return };
                    if tell(at, same_content(root, entry, &mut buffer)).is_break() {
                        return;
                    }
                }
            });
        }
    });
}

fn same_content(root: BorrowedFd<'_>, entry: &Entry, buffer: &mut Vec<u8>) -> bool {
    let EntryKind::File { size, chunks, .. } = &entry.kind else { return false };
    let mut wanted = chunks.iter();
    // The first difference is enough; after one that changed meanwhile, the next reading differs in any case.
    let mut each = |digest, _: &[u8]| match wanted.next() {
        Some(wanted) if *wanted == digest => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    };
    let hashed = hash_file(root, &entry.path, *size, buffer, &mut each);
    hashed.is_ok_and(|hashed| !hashed.unsteady && hashed.size == *size && hashed.chunks == *chunks)
}
