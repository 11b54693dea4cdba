//! A collection, step by step.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use futures_util::stream::{self, StreamExt};
use outlast_core::WorkspaceRef;

use super::decide::{Facts, Lies, Step, decide};
use super::{GcInput, GcReport, WorkspaceGcError};
use crate::objects::{Listed, ObjectsError};
use crate::workspace::Workspaces;
use crate::workspace::keys::{Object, Place, ROOT, parse};
use crate::workspace::read::Reader;
use crate::workspace::threads::default_threads;

/// Manifests that are read at a time.
const REQUESTS: usize = 8;
/// So many missing objects are named.
const NAMED: usize = 100;
/// From so many expected snapshots on, less than half of them is suspicious.
const FEW: u64 = 8;

impl Workspaces {
    /// Puts aside what nothing refers to, and deletes what was put aside long ago. `still_held` says whether the caller
    /// is still the only one who collects; it is asked before each change.
    ///
    /// Nothing is changed unless the need of every live snapshot is known and everything is listed. What is aside is
    /// still found by whoever reads, and is copied back by the next collection if a snapshot refers to it by then.
    /// So what a snapshot under way may have taken for stored is safe, as long as `oldest_pin` tells of it.
    pub async fn collect(
        &self,
        input: &GcInput,
        still_held: &(dyn Fn() -> bool + Sync),
    ) -> Result<GcReport, WorkspaceGcError> {
        if !still_held() {
            return Err(WorkspaceGcError::NotHeld);
        }
        let found = input.live.len() as u64;
        match input.previous_live {
            Some(expected) if expected >= FEW && found < expected / 2 && !input.force => {
                return Err(WorkspaceGcError::LiveSetShrank { expected, found });
            }
            _ => {}
        }
        let needed = self.needed(&input.live).await?;
        let listed = self.objects.list(ROOT).await.map_err(|source| WorkspaceGcError::List { source })?;
        let mut pass = Pass { workspaces: self, input, still_held, report: GcReport::default() };
        pass.report.live_refs = found;
        pass.run(&listed, &needed).await?;
        Ok(pass.report)
    }

    /// What the live snapshots consist of. Complete, or an error.
    async fn needed(&self, live: &BTreeSet<WorkspaceRef>) -> Result<HashSet<Object>, WorkspaceGcError> {
        let reader = Reader::new(&self.objects, default_threads());
        // By value: references in these futures would keep whoever awaits them from changing threads.
        let mut manifests = stream::iter(live.iter().copied().collect::<Vec<_>>())
            .map(|reference| {
                let reader = &reader;
                async move { (reference, reader.manifest(&reference).await) }
            })
            .buffer_unordered(REQUESTS);
        let mut needed = HashSet::new();
        while let Some((reference, manifest)) = manifests.next().await {
            let manifest = manifest.map_err(|source| WorkspaceGcError::Manifest { reference, source })?;
            needed.insert(Object::manifest(&reference));
            needed.extend(manifest.chunks().map(Object::chunk));
        }
        Ok(needed)
    }
}

struct Pass<'p> {
    workspaces: &'p Workspaces,
    input: &'p GcInput,
    still_held: &'p (dyn Fn() -> bool + Sync),
    report: GcReport,
}

impl Pass<'_> {
    async fn run(&mut self, listed: &[Listed], needed: &HashSet<Object>) -> Result<(), WorkspaceGcError> {
        self.report.listed = listed.len() as u64;
        let mut known: Vec<(&Listed, Place)> = Vec::with_capacity(listed.len());
        for object in listed {
            match parse(&object.key) {
                Some(place) => known.push((object, place)),
                None => self.report.foreign += 1,
            }
        }
        let mut in_place: HashSet<Object> = HashSet::new();
        let mut aside: BTreeMap<Object, &Listed> = BTreeMap::new();
        for (object, place) in &known {
            match place.aside_since {
                None => drop(in_place.insert(place.object)),
                // Keys are sorted by time: the newest copy counts.
                Some(_) => drop(aside.insert(place.object, object)),
            }
        }
        // What is needed comes first: whatever stops this pass, it does not leave that undone.
        let mut missing: Vec<&Object> = needed.iter().filter(|object| !in_place.contains(object)).collect();
        missing.sort_unstable();
        for object in missing {
            match aside.get(object) {
                Some(copy) if self.copy(&copy.key, &object.key()).await? => {
                    self.report.restored += 1;
                    in_place.insert(*object);
                }
                _ if self.report.missing.len() < NAMED => self.report.missing.push(object.key()),
                _ => {}
            }
        }
        for (object, place) in known {
            let lies = match place.aside_since {
                None => Lies::InPlace { modified: object.modified },
                Some(since) => Lies::Aside { since },
            };
            let live = needed.contains(&place.object);
            let in_place_too = in_place.contains(&place.object);
            self.step(object, &place.object, decide(&Facts { live, lies, in_place_too }, self.input)).await?;
        }
        Ok(())
    }

    async fn step(&mut self, listed: &Listed, object: &Object, step: Step) -> Result<(), WorkspaceGcError> {
        match step {
            // All copying back is done by now.
            Step::KeepLive | Step::Restore => self.report.live += 1,
            Step::KeepYoung => self.report.kept += 1,
            Step::Wait => self.report.waiting += 1,
            Step::Pinned => self.report.held_by_pins += 1,
            Step::PutAside => {
                if !self.copy(&listed.key, &object.quarantine_key(self.input.now)).await? {
                    return Ok(());
                }
                self.delete(&listed.key).await?;
                self.report.quarantined += 1;
                self.report.quarantined_bytes += listed.size;
            }
            Step::Delete => {
                self.delete(&listed.key).await?;
                self.report.deleted += 1;
                self.report.deleted_bytes += listed.size;
            }
        }
        Ok(())
    }

    /// False where there is nothing to copy any more.
    async fn copy(&self, from: &str, to: &str) -> Result<bool, WorkspaceGcError> {
        self.held()?;
        if self.input.dry_run {
            return Ok(true);
        }
        match self.workspaces.objects.copy(from, to).await {
            Ok(()) => Ok(true),
            Err(ObjectsError::NotFound { .. }) => Ok(false),
            Err(source) => {
                Err(WorkspaceGcError::Copy { key: from.to_owned(), source, report: self.so_far() })
            }
        }
    }

    async fn delete(&self, key: &str) -> Result<(), WorkspaceGcError> {
        self.held()?;
        if self.input.dry_run {
            return Ok(());
        }
        let deleted = self.workspaces.objects.delete(key).await;
        deleted.map_err(|source| WorkspaceGcError::Delete {
            key: key.to_owned(),
            source,
            report: self.so_far(),
        })
    }

    fn held(&self) -> Result<(), WorkspaceGcError> {
        if (self.still_held)() { Ok(()) } else { Err(WorkspaceGcError::Lost { report: self.so_far() }) }
    }

    fn so_far(&self) -> Box<GcReport> {
        Box::new(self.report.clone())
    }
}
