//! A restore, step by step.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use outlast_core::WorkspaceRef;

use super::apply::Apply;
use super::compare::same_tree;
use super::steps::Steps;
use super::target::{Staging, Target};
use super::{RestoreError, RestoreMode, RestoreOptions, Restored, exact, overlay, stage};
use crate::workspace::files::names;
use crate::workspace::read::Reader;
use crate::workspace::threads::{Died, Stop, blocking, default_threads};
use crate::workspace::{Entry, EntryKind, Manifest, Workspaces};

impl Workspaces {
    /// Makes `destination` what the snapshot says, durable before it returns. The directory above must be there; the
    /// destination may be missing. It must be no symbolic link.
    ///
    /// The snapshot is written beside the destination first, verified, then moved in. Nothing is deleted: what is in
    /// the way is moved to a directory beside the destination. So after a crash or an error at any step, everything is
    /// in one of the two, and a repetition goes on. A destination that is what the snapshot says is not touched.
    ///
    /// If this is dropped, a thread may still end what it began; until then a repetition is [`RestoreError::Busy`].
    pub async fn restore(
        &self,
        reference: &WorkspaceRef,
        destination: &Path,
        options: &RestoreOptions,
    ) -> Result<Restored, RestoreError> {
        self.restore_in_steps(reference, destination, options, Steps::default()).await
    }

    pub(super) async fn restore_in_steps(
        &self,
        reference: &WorkspaceRef,
        destination: &Path,
        options: &RestoreOptions,
        steps: Steps,
    ) -> Result<Restored, RestoreError> {
        let stop = Stop::default();
        let _guard = stop.guard();
        let threads = options.threads.unwrap_or_else(default_threads).max(1);
        let store = self.objects.directory().map(Path::to_owned);
        let (path, now_ms) = (destination.to_owned(), options.now_ms);
        let target = blocking(move || {
            let target = Target::open(&path, store.as_deref(), now_ms)?;
            // A destination that cannot be used is refused before anything is read.
            target.existing().map(|_| target)
        });
        let target = target.await.map_err(died)??;
        let reader = Reader::new(&self.objects, threads);
        let manifest = Arc::new(reader.manifest(reference).await?);
        let mut restored = summed_up(*reference, &manifest);
        check_size(&manifest, restored.bytes, options)?;
        let plan = {
            let (target, manifest, mode, steps) =
                (target.clone(), manifest.clone(), options.mode, steps.clone());
            blocking(move || plan(&target, &manifest, mode, threads, &stop, &steps)).await.map_err(died)??
        };
        let Some(Plan { staging, held }) = plan else {
            restored.unchanged = true;
            return Ok(restored);
        };
        let missing: Vec<Entry> = manifest
            .entries()
            .iter()
            .zip(&held)
            .filter(|(entry, held)| wanted(entry, **held))
            .map(|(entry, _)| entry.clone())
            .collect();
        restored.written = missing.iter().filter(|entry| !is_directory(entry)).count() as u64;
        let staging = stage::fill(staging, &reader, missing, options).await?;
        let mode = options.mode;
        let applied = blocking(move || {
            let mut apply = Apply::begin(&target, &staging, &manifest, &steps)?;
            match mode {
                RestoreMode::Exact => exact::apply(&mut apply)?,
                RestoreMode::Overlay => overlay::apply(&mut apply, &held)?,
            }
            let put_aside = apply.put_aside;
            apply.finish().map(|aside| (aside, put_aside))
        });
        (restored.aside, restored.put_aside) = applied.await.map_err(died)??;
        Ok(restored)
    }
}

fn died(died: Died) -> RestoreError {
    RestoreError::Internal { message: died.to_string() }
}

struct Plan {
    staging: Staging,
    /// For each entry, whether it is in its place.
    held: Vec<bool>,
}

/// None where nothing is to be done.
fn plan(
    target: &Target,
    manifest: &Manifest,
    mode: RestoreMode,
    threads: usize,
    stop: &Stop,
    steps: &Steps,
) -> Result<Option<Plan>, RestoreError> {
    let nothing = vec![false; manifest.entries().len()];
    let Some(existing) = target.existing()? else {
        return Ok(Some(Plan { staging: target.stage(steps)?, held: nothing }));
    };
    let held = match mode {
        RestoreMode::Exact if is_empty(target, &existing)? && !manifest.entries().is_empty() => nothing,
        RestoreMode::Exact if same_tree(existing.as_fd(), manifest, threads, stop) => return Ok(None),
        RestoreMode::Exact => nothing,
        RestoreMode::Overlay => overlay::held(existing.as_fd(), manifest, threads, stop),
    };
    if mode == RestoreMode::Overlay
        && held.iter().all(|held| *held)
        && overlay::same_modes(existing.as_fd(), manifest)
    {
        return Ok(None);
    }
    target.check_device(&existing)?;
    Ok(Some(Plan { staging: target.stage(steps)?, held }))
}

fn is_empty(target: &Target, existing: &OwnedFd) -> Result<bool, RestoreError> {
    let listed = names(existing.as_fd());
    Ok(listed.map_err(|error| super::apply::failed("read", target.path(), error))?.is_empty())
}

fn is_directory(entry: &Entry) -> bool {
    matches!(entry.kind, EntryKind::Directory { .. })
}

/// Directories are always staged: what is missing lies in them.
fn wanted(entry: &Entry, held: bool) -> bool {
    !held || is_directory(entry)
}

fn check_size(manifest: &Manifest, bytes: u64, options: &RestoreOptions) -> Result<(), RestoreError> {
    let entries = manifest.entries().len();
    if entries > options.max_entries {
        let (found, max) = (entries as u64, options.max_entries as u64);
        return Err(RestoreError::TooLarge { what: "entries", found, max });
    }
    if bytes > options.max_bytes {
        return Err(RestoreError::TooLarge { what: "bytes", found: bytes, max: options.max_bytes });
    }
    Ok(())
}

fn summed_up(reference: WorkspaceRef, manifest: &Manifest) -> Restored {
    let mut restored = Restored {
        reference,
        files: 0,
        directories: 0,
        symlinks: 0,
        bytes: 0,
        unchanged: false,
        written: 0,
        aside: None,
        put_aside: 0,
    };
    for entry in manifest.entries() {
        match entry.kind {
            EntryKind::Directory { .. } => restored.directories += 1,
            EntryKind::Symlink { .. } => restored.symlinks += 1,
            EntryKind::File { size, .. } => {
                restored.files += 1;
                restored.bytes += size;
            }
        }
    }
    restored
}
