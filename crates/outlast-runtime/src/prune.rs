//! Deleting the journals of runs that need them no more, in sandboxes that live on.

use std::time::Duration;

use outlast_core::decide::{FilesAge, KeepReason, PruneFacts, PruneRecord, PruneStep, PruneTimes, RunUse};
use outlast_core::duration::millis;
use outlast_core::{RunId, decide};
use outlast_sandbox::{AgeGate, RunGroup};
use outlast_store::{Instance, InstanceState, ListInstances, StoreError};
use serde::Serialize;

use crate::{Host, fail};

/// How many instances are asked for at once.
const PAGE: usize = 100;
/// After so many lookups in a row that failed, the store is not asked any more: each of them may take long.
const FAILED_LOOKUPS: u32 = 3;

/// What a sweep through the runs directories may do.
#[derive(Debug, Clone)]
pub struct PruneOptions {
    /// How old the files of a run must be that the store does not know, on the sandbox's own clock.
    pub orphan_ttl: Duration,
    /// How many runs' files go at most. The next sweep goes on.
    pub max_deletes: usize,
    /// How long ago a run must have ended, on the store's clock.
    pub keep_journals: Duration,
    /// Tell what would be deleted, and delete nothing.
    pub dry_run: bool,
}

impl Default for PruneOptions {
    fn default() -> Self {
        PruneOptions {
            orphan_ttl: Duration::from_secs(3600),
            max_deletes: 200,
            keep_journals: Duration::ZERO,
            dry_run: false,
        }
    }
}

/// What a sweep has found and done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PruneResult {
    /// How many files there were. What is left of runs that were pruned before does not count.
    pub listed: usize,
    /// The runs that they belong to.
    pub run_ids: Vec<RunId>,
    /// The runs whose files are deleted; in a dry run, would be.
    pub deleted: Vec<RunId>,
    /// What stays, and why.
    pub kept: Vec<PruneKept>,
    /// Whether every sandbox told how old its files are.
    #[serde(serialize_with = "age_gate")]
    pub age_gate: AgeGate,
    /// What went wrong. What it concerns is kept.
    pub failures: Vec<PruneFailure>,
}

/// Files that stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PruneKept {
    /// The run; none where the name does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The files.
    pub names: Vec<String>,
    /// Why.
    pub reason: KeepReason,
}

/// Something that went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PruneFailure {
    /// At what.
    pub stage: PruneStage,
    /// With which run, if with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// What, for people.
    pub message: String,
}

/// A part of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PruneStage {
    /// Finding out which sandboxes and files there are.
    List,
    /// Finding out how old the files are.
    MtimeList,
    /// Asking the store.
    Store,
    /// Deleting.
    Delete,
}

fn age_gate<S: serde::Serializer>(gate: &AgeGate, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(match gate {
        AgeGate::Available => "available",
        AgeGate::Unavailable => "unavailable",
    })
}

impl Host {
    /// Deletes the files of runs that are proven to need them no more, in every live sandbox that this host reaches.
    /// Whatever fails, the rest is done, and what it concerns is kept. Any number of hosts may do this at once.
    pub async fn prune_journals(&self, options: &PruneOptions) -> PruneResult {
        let mut sweep = Sweep::begin(self, options).await;
        let machine = self.inner.provider.machine().map(str::to_owned);
        let mut query = ListInstances { machine, limit: PAGE, ..ListInstances::default() };
        loop {
            let page = match self.inner.store.list_instances(&query).await {
                Ok(page) => page,
                Err(error) => {
                    sweep.failed(PruneStage::List, None, &error);
                    break;
                }
            };
            for instance in &page {
                sweep.instance(instance).await;
            }
            match page.last() {
                Some(last) if page.len() == PAGE => {
                    query.after = Some((last.created_at, last.instance_id.clone()));
                }
                _ => break,
            }
        }
        sweep.result
    }

    /// The same in one sandbox.
    pub async fn prune_instance(&self, instance: &Instance, options: &PruneOptions) -> PruneResult {
        let mut sweep = Sweep::begin(self, options).await;
        sweep.instance(instance).await;
        sweep.result
    }
}

struct Sweep<'h> {
    host: &'h Host,
    times: PruneTimes,
    deletes_left: usize,
    dry_run: bool,
    /// The store's clock, if it was asked for and told.
    now: Option<u64>,
    failed_lookups: u32,
    result: PruneResult,
}

impl<'h> Sweep<'h> {
    async fn begin(host: &'h Host, options: &PruneOptions) -> Sweep<'h> {
        let mut sweep = Sweep {
            host,
            times: PruneTimes {
                orphan_ttl: millis(options.orphan_ttl),
                keep_journals: millis(options.keep_journals),
            },
            deletes_left: options.max_deletes,
            dry_run: options.dry_run,
            now: None,
            failed_lookups: 0,
            result: PruneResult {
                listed: 0,
                run_ids: Vec::new(),
                deleted: Vec::new(),
                kept: Vec::new(),
                age_gate: AgeGate::Available,
                failures: Vec::new(),
            },
        };
        if sweep.times.keep_journals > 0 {
            match host.inner.store.now().await {
                Ok(now) => sweep.now = Some(now),
                Err(error) => sweep.failed(PruneStage::Store, None, &error),
            }
        }
        sweep
    }

    fn failed(&mut self, stage: PruneStage, run_id: Option<&RunId>, message: &dyn std::fmt::Display) {
        let message = message.to_string();
        self.result.failures.push(PruneFailure { stage, run_id: run_id.cloned(), message });
    }

    async fn instance(&mut self, instance: &Instance) {
        let provider = &self.host.inner.provider;
        // One that is not complete has no files yet; one that is being destroyed takes them along.
        if instance.state != InstanceState::Live || instance.provider != provider.name() {
            return;
        }
        let id = &instance.instance_id;
        let listing = match provider.run_files(id).await {
            Ok(listing) => listing,
            Err(error) => {
                self.result.age_gate = AgeGate::Unavailable;
                self.failed(PruneStage::List, None, &format_args!("sandbox {id}: {error}"));
                return;
            }
        };
        if let Some(trouble) = &listing.trouble {
            self.failed(PruneStage::MtimeList, None, &format_args!("sandbox {id}: {trouble}"));
        }
        if listing.age_gate == AgeGate::Unavailable {
            self.result.age_gate = AgeGate::Unavailable;
            tracing::warn!(instance = %id, "the sandbox does not tell how old its files are: those of unknown runs stay");
        }
        for group in listing.groups() {
            fail::point("prune.run");
            self.result.listed += group.names.len();
            self.result.run_ids.extend(group.run.clone());
            let reason = match &group.run {
                Some(run) => self.run(instance, run, group.age).await,
                None => self.decide(false, PruneRecord::Failed, group.age, RunUse::Free).err(),
            };
            if let Some(reason) = reason {
                let RunGroup { run, names, .. } = group;
                self.result.kept.push(PruneKept { run_id: run, names, reason });
            }
        }
    }

    /// Deletes the run's files, or says why not.
    async fn run(&mut self, instance: &Instance, run: &RunId, age: FilesAge) -> Option<KeepReason> {
        if self.deletes_left == 0 {
            // The store need not be asked for nothing.
            return self.decide(true, PruneRecord::Failed, age, RunUse::Free).err();
        }
        let record = self.record(instance, run).await;
        if let Err(reason) = self.decide(true, record, age, RunUse::Free) {
            return Some(reason);
        }
        let provider = &self.host.inner.provider;
        let id = &instance.instance_id;
        let in_use = if self.dry_run {
            provider.run_use(id, run).await
        } else {
            // It takes the lock, so nobody can come in between the question and the deed.
            provider.remove_run(id, run).await
        };
        match in_use {
            Ok(in_use) => {
                if let Err(reason) = self.decide(true, record, age, in_use) {
                    return Some(reason);
                }
                self.deletes_left -= 1;
                self.result.deleted.push(run.clone());
                None
            }
            Err(error) => {
                self.failed(PruneStage::Delete, Some(run), &error);
                Some(KeepReason::DeleteFailed)
            }
        }
    }

    fn decide(
        &self,
        decoded: bool,
        record: PruneRecord,
        age: FilesAge,
        in_use: RunUse,
    ) -> Result<(), KeepReason> {
        let facts = PruneFacts { decoded, deletes_left: self.deletes_left, record, age, in_use };
        match decide::prune(&facts, &self.times) {
            PruneStep::Delete => Ok(()),
            PruneStep::Keep(reason) => Err(reason),
        }
    }

    /// What the store says. Asked afresh for each run: of what was true a while ago, nothing follows.
    async fn record(&mut self, instance: &Instance, run: &RunId) -> PruneRecord {
        if self.failed_lookups >= FAILED_LOOKUPS {
            return PruneRecord::Failed;
        }
        match self.lookup(instance, run).await {
            Ok(record) => {
                self.failed_lookups = 0;
                record
            }
            Err(error) => {
                self.failed_lookups += 1;
                self.failed(PruneStage::Store, Some(run), &error);
                PruneRecord::Failed
            }
        }
    }

    async fn lookup(&self, instance: &Instance, run: &RunId) -> Result<PruneRecord, StoreError> {
        let inner = &self.host.inner;
        let found = match inner.store.run(&instance.tenant, run).await? {
            // Versions that did not record the thread did not record whose the sandbox is either.
            None if instance.thread_id.is_none() => match inner.store.run(&inner.tenant, run).await? {
                None => return Ok(PruneRecord::Failed),
                found => found,
            },
            found => found,
        };
        Ok(match found {
            None => PruneRecord::Unknown,
            Some(record) if record.status.is_terminal() => PruneRecord::Ended {
                sealed: record.sealed,
                ended_for: match (self.now, record.finished_at) {
                    (Some(now), Some(at)) => Some(now.saturating_sub(at)),
                    _ => None,
                },
            },
            Some(_) => PruneRecord::Live,
        })
    }
}
