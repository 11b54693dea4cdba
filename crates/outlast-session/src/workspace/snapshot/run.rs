//! A snapshot, step by step.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use outlast_core::WorkspaceRef;

use super::hashing::{Work, start};
use super::prepare::{Prepared, prepare};
use super::state::{Run, is_file, manifest};
use super::upload::{compressed, look_up, upload};
use super::{Snapshot, SnapshotError, SnapshotOptions};
use crate::workspace::keys::Object;
use crate::workspace::threads::{Died, Pool, Stop, blocking};
use crate::workspace::{Digest, Entry, EntryKind, MAX_MANIFEST_BYTES, Manifest, Workspaces};

impl Workspaces {
    /// Stores the tree under `root`, durable before it returns. What is stored already is not stored again: first the
    /// chunks, then, when all of them last, the manifest. May be dropped at any time; then there are objects that
    /// nothing refers to, and the threads end soon.
    ///
    /// Chunks that an earlier snapshot stored, and that nothing refers to any more, are taken as stored. So that none
    /// of them is deleted meanwhile, collections must know when the oldest snapshot under way began
    /// ([`super::super::GcInput::oldest_pin`]), until what refers to this one is recorded.
    pub async fn snapshot(&self, root: &Path, options: &SnapshotOptions) -> Result<Snapshot, SnapshotError> {
        let stop = Stop::default();
        let _guard = stop.guard();
        let prepared = {
            let (root, options) = (root.to_owned(), options.clone());
            let (stop, store) = (stop.clone(), self.objects.directory().map(Path::to_owned));
            blocking(move || prepare(&root, &options, store.as_deref(), &stop)).await.map_err(died)??
        };
        let unchanged = self.unchanged(&prepared, options).await?;
        let base = match (&unchanged, &options.base) {
            (None, Some(base)) => self.stored_by(base).await,
            _ => HashSet::new(),
        };
        let mut run = Run::new(prepared, options);
        let (reference, manifest) = match unchanged {
            Some(found) => found,
            None => self.store(&mut run, base, stop).await?,
        };
        let snapshot = run.snapshot(reference, &manifest);
        blocking(move || run.prepared.finish(run.read)).await.map_err(died)?;
        Ok(snapshot)
    }

    /// The manifest, if nothing has to be read for it and it is the base's.
    async fn unchanged(
        &self,
        prepared: &Prepared,
        options: &SnapshotOptions,
    ) -> Result<Option<(WorkspaceRef, Manifest)>, SnapshotError> {
        let files = prepared.walked.entries.iter().zip(&prepared.known);
        let all_known = files.into_iter().all(|(found, known)| known.is_some() || !is_file(&found.kind));
        let Some(base) = options.base.filter(|_| all_known) else { return Ok(None) };
        let manifest = manifest(prepared, &HashMap::new(), &HashSet::new())?;
        let reference = manifest.reference();
        if reference != base || self.objects.head(&Object::manifest(&base).key()).await?.is_none() {
            return Ok(None);
        }
        Ok(Some((reference, manifest)))
    }

    /// The chunks of a snapshot that is known to be live; none where it cannot be read: then each is asked for.
    async fn stored_by(&self, base: &WorkspaceRef) -> HashSet<Digest> {
        match self.manifest(base).await {
            Ok(manifest) => manifest.chunks().collect(),
            Err(error) => {
                tracing::warn!(%base, %error, "a snapshot that should be there cannot be read: its chunks are looked for one by one");
                HashSet::new()
            }
        }
    }

    async fn store(
        &self,
        run: &mut Run,
        base: HashSet<Digest>,
        stop: Stop,
    ) -> Result<(WorkspaceRef, Manifest), SnapshotError> {
        let base = Arc::new(base);
        let asked = run.prepared.known.iter().flatten().flatten().filter(|chunk| !base.contains(chunk));
        let known = look_up(&self.objects, asked.copied().collect()).await?;
        run.forget_lost(&known);
        let pool = Pool::new(run.threads);
        let news = start(
            Work {
                root: run.prepared.root.clone(),
                files: run.to_read(),
                max_bytes: run.options.max_bytes,
                stored: base.clone(),
                stop,
            },
            run.threads,
        );
        let uploaded =
            upload(&self.objects, &pool, &known, news, |index, hashed| run.file(index, hashed)).await?;
        run.uploaded = uploaded;
        let manifest = manifest(&run.prepared, &run.read_all, &run.dropped)?;
        let summary_bytes = manifest.entries().iter().map(size).sum::<u64>();
        if summary_bytes > run.options.max_bytes {
            return Err(run.too_many_bytes());
        }
        let bytes = manifest.encode();
        if bytes.len() as u64 > MAX_MANIFEST_BYTES {
            return Err(SnapshotError::TooLarge {
                what: "bytes of paths and digests",
                max: MAX_MANIFEST_BYTES,
            });
        }
        let reference = WorkspaceRef::from_digest(*Digest::of(&bytes).bytes());
        let key = Object::manifest(&reference).key();
        let there = self.objects.head(&key).await?.is_some();
        if there && run.options.base == Some(reference) {
            return Ok((reference, manifest));
        }
        // Also what was found may have been written a moment ago by somebody who has not come to this yet.
        let doubtful: HashSet<Digest> = manifest.chunks().filter(|chunk| !base.contains(chunk)).collect();
        self.objects.sync(doubtful.into_iter().map(|chunk| Object::chunk(chunk).key()).collect()).await?;
        if !there {
            let body = Bytes::from(compressed(&pool, bytes).await?);
            run.uploaded.objects += 1;
            run.uploaded.bytes += body.len() as u64;
            self.objects.put(&key, body).await?;
        }
        Ok((reference, manifest))
    }
}

fn died(died: Died) -> SnapshotError {
    SnapshotError::Internal { message: died.to_string() }
}

fn size(entry: &Entry) -> u64 {
    match &entry.kind {
        EntryKind::File { size, .. } => *size,
        _ => 0,
    }
}
