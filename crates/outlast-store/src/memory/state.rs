//! What the store holds.

use std::collections::{BTreeMap, HashMap};

use outlast_core::decide::{self, Fenced, Lease, WriteFacts};
use outlast_core::run::{ClaimToken, Driver, RunRecord};
use outlast_core::{InstanceId, Nonce, OwnerId, RunId, Seq, Tenant, ThreadId};

use super::leases::LeaseRow;
use super::sessions::Session;
use crate::{HostSeen, Instance, NewEvent, NewMessage, Ports, StoredEvent};

/// Everything, in the order in which it was accepted.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) runs: Vec<Run>,
    pub(super) by_id: HashMap<RunId, usize>,
    /// The runs of each thread, and its session.
    pub(super) threads: HashMap<(Tenant, ThreadId), OfThread>,
    pub(super) sessions: Vec<Session>,
    /// By their stored names.
    pub(super) leases: BTreeMap<String, LeaseRow>,
    /// Who holds each, since when and until when, in milliseconds since 1970.
    pub(super) pins: BTreeMap<String, (OwnerId, u64, u64)>,
    pub(super) instances: Vec<Instance>,
    /// Until when each counts who destroys an instance, on the clock of the day.
    pub(super) destroyers: HashMap<InstanceId, u64>,
    /// Processes that have announced themselves, and until when that counts.
    pub(super) hosts: BTreeMap<OwnerId, (HostSeen, u64)>,
}

/// Where what belongs to a thread is.
#[derive(Debug, Default)]
pub(super) struct OfThread {
    pub(super) runs: Vec<usize>,
    pub(super) session: Option<usize>,
}

/// A run and all that belongs to it.
#[derive(Debug)]
pub(super) struct Run {
    /// The record but for what is derived when it is read.
    pub(super) record: RunRecord,
    pub(super) digest: String,
    pub(super) lease: Option<StoredLease>,
    pub(super) nonce: Option<Nonce>,
    pub(super) last_batch: Option<Nonce>,
    pub(super) closed: bool,
    pub(super) events: Vec<StoredEvent>,
    pub(super) messages: BTreeMap<i64, NewMessage>,
    /// What its thread's ledger knows of it: 0 nothing, 1 its start, 2 its end.
    pub(super) ledgered: u8,
    /// Until when each host's viewers count, in milliseconds since 1970.
    pub(super) presence: BTreeMap<OwnerId, u64>,
    /// The events have aged out, or are about to.
    pub(super) expired: bool,
    /// How often it made no progress, and with which tail.
    pub(super) stalls: (u32, Seq),
}

/// A lease as it was granted.
#[derive(Debug)]
pub(super) struct StoredLease {
    pub(super) owner: OwnerId,
    pub(super) boot_id: String,
    /// Milliseconds since that boot.
    pub(super) until: u64,
    /// Milliseconds since 1970.
    pub(super) since: u64,
}

/// One look at the clocks.
pub(super) struct Now {
    pub(super) wall: u64,
    pub(super) boot: u64,
    pub(super) boot_id: String,
}

impl Now {
    pub(super) fn of(ports: &Ports) -> Now {
        let clock = &ports.clock;
        Now { wall: clock.wall_ms(), boot: clock.boot_ms(), boot_id: clock.boot_id() }
    }

    /// The end of a lease or presence of this length, and its beginning on the given clock.
    pub(super) fn plus(from: u64, time: std::time::Duration) -> u64 {
        from.saturating_add(outlast_core::duration::millis(time))
    }
}

impl State {
    /// The runs of a thread, in the order of their acceptance.
    pub(super) fn runs_of(&self, tenant: &Tenant, thread: &ThreadId) -> impl Iterator<Item = &Run> {
        let found = self.threads.get(&(tenant.clone(), thread.clone()));
        found.into_iter().flat_map(|of| of.runs.iter().map(|at| &self.runs[*at]))
    }

    /// Adds a run.
    pub(super) fn add_run(&mut self, run: Run) {
        let at = self.runs.len();
        let thread = (run.record.tenant.clone(), run.record.thread_id.clone());
        self.by_id.insert(run.record.run_id.clone(), at);
        self.threads.entry(thread).or_default().runs.push(at);
        self.runs.push(run);
    }

    /// Takes out the runs that are not wanted any more.
    pub(super) fn keep_runs(&mut self, keep: impl Fn(&Run) -> bool) {
        let runs = std::mem::take(&mut self.runs);
        self.by_id.clear();
        for of in self.threads.values_mut() {
            of.runs.clear();
        }
        for run in runs.into_iter().filter(keep) {
            self.add_run(run);
        }
    }

    pub(super) fn find(&self, tenant: &Tenant, run_id: &RunId) -> Option<&Run> {
        let run = &self.runs[*self.by_id.get(run_id)?];
        (run.record.tenant == *tenant).then_some(run)
    }

    pub(super) fn get(&self, run_id: &RunId) -> Option<&Run> {
        Some(&self.runs[*self.by_id.get(run_id)?])
    }

    pub(super) fn get_mut(&mut self, run_id: &RunId) -> Option<&mut Run> {
        Some(&mut self.runs[*self.by_id.get(run_id)?])
    }

    /// The run, if the token may write to it.
    pub(super) fn fenced(&mut self, token: &ClaimToken) -> Result<&mut Run, Fenced> {
        let run = self.get_mut(&token.run_id).ok_or_else(|| Fenced::RunNotFound(token.run_id.clone()))?;
        run.facts().fence(token)?;
        Ok(run)
    }
}

impl Run {
    pub(super) fn is_live(&self) -> bool {
        !self.record.status.is_terminal()
    }

    /// What fenced writes are decided on.
    pub(super) fn facts(&self) -> WriteFacts {
        WriteFacts {
            status: self.record.status,
            epoch: self.record.driver_epoch,
            nonce: self.nonce.clone(),
            tail: self.tail(),
            last_batch: self.last_batch.clone(),
            cancel: self.record.cancel_requested,
        }
    }

    pub(super) fn lease_now(&self, now: &Now) -> Option<Lease> {
        self.lease.as_ref().zip(self.nonce.as_ref()).map(|(lease, nonce)| Lease {
            owner: lease.owner.clone(),
            nonce: nonce.clone(),
            remaining: if lease.boot_id == now.boot_id { lease.until.saturating_sub(now.boot) } else { 0 },
        })
    }

    /// The record as it is to be seen now.
    pub(super) fn seen(&self, now: &Now) -> RunRecord {
        let driver = self.lease_now(now).filter(|lease| lease.remaining > 0 && self.is_live());
        RunRecord {
            driver: driver.map(|lease| Driver {
                owner: lease.owner,
                since: self.lease.as_ref().map_or(0, |lease| lease.since),
                lease_remaining: lease.remaining,
            }),
            detached_since: self.detached_since(now),
            ..self.record.clone()
        }
    }

    /// For how many milliseconds nobody has watched it.
    pub(super) fn detached_for(&self, now: &Now) -> Option<u64> {
        self.detached_since(now).map(|since| now.wall - since)
    }

    pub(super) fn detached_since(&self, now: &Now) -> Option<u64> {
        let latest = self.presence.values().max().copied();
        decide::detached_since(self.record.started_at, latest, now.wall, !self.is_live())
    }

    pub(super) fn tail(&self) -> Seq {
        Seq(self.record.tail)
    }

    pub(super) fn push(&mut self, events: Vec<NewEvent>, at: u64) {
        for event in events {
            self.record.tail += 1;
            let seq = Seq(self.record.tail);
            self.events.push(StoredEvent {
                seq,
                at,
                origin: event.origin,
                json: event.chunk.json,
                pointer: event.pointer,
            });
        }
    }
}
