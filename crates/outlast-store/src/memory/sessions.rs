//! Sessions, as they are held.

use std::collections::{BTreeSet, HashMap};

use outlast_core::decide::{self, RecordsRefusal, SessionState};
use outlast_core::ledger::{Fold, Kind, Pointer, SessionId};
use outlast_core::{Tenant, ThreadId};

use super::state::{Now, Run, State};
use crate::ledger::{run_ended, run_started};
use crate::{NewMessage, NewRecord, StoredRecord};

/// A session and all that belongs to it.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) session_id: SessionId,
    pub(super) tenant: Tenant,
    pub(super) thread_id: ThreadId,
    pub(super) state: SessionState,
    pub(super) created_at: u64,
    pub(super) active_at: u64,
    pub(super) deleted_at: Option<u64>,
    pub(super) barrier: u64,
    pub(super) fold: Fold,
    pub(super) records: Vec<StoredRecord>,
    /// The number of each record by its id.
    pub(super) ids: HashMap<String, u64>,
    pub(super) condemned: BTreeSet<String>,
}

impl Session {
    fn new(session_id: SessionId, tenant: &Tenant, thread_id: &ThreadId, now: &Now) -> Session {
        Session {
            session_id,
            tenant: tenant.clone(),
            thread_id: thread_id.clone(),
            state: SessionState::Active,
            created_at: now.wall,
            active_at: now.wall,
            deleted_at: None,
            barrier: 0,
            fold: Fold::empty(),
            records: Vec::new(),
            ids: HashMap::new(),
            condemned: BTreeSet::new(),
        }
    }

    pub(super) fn tip(&self) -> u64 {
        self.records.len() as u64
    }

    /// Adds a record whose id is free.
    pub(super) fn add(&mut self, new: &NewRecord, now: &Now) -> u64 {
        let seq = self.tip() + 1;
        let kind = new.record.kind();
        let at = new.at.unwrap_or(now.wall);
        self.fold.apply(seq, at, &new.record);
        match kind {
            Kind::Barrier => self.barrier = seq,
            Kind::SessionStopped => {}
            _ => self.active_at = now.wall,
        }
        self.ids.insert(new.id.clone(), seq);
        self.records.push(StoredRecord {
            seq,
            at,
            id: new.id.clone(),
            kind: kind.as_str().to_owned(),
            skip: kind.skippable(),
            sum: new.sum(),
            body: new.record.body(),
            pointer: new.pointer().cloned(),
        });
        seq
    }

    /// Adds a record of a run unless it is there.
    pub(super) fn add_once(&mut self, new: &NewRecord, now: &Now) {
        if !self.ids.contains_key(&new.id) {
            self.add(new, now);
        }
    }

    /// Takes the messages of a run that has ended.
    pub(super) fn take_messages(&mut self, run: &mut Run, now: &Now) {
        for new in std::mem::take(&mut run.messages).into_values() {
            let NewMessage { ordinal, message, offloaded } = new;
            let run_id = run.record.run_id.clone();
            let record = outlast_core::ledger::Record::Message { run_id, ordinal, message };
            self.add_once(&NewRecord { offloaded, ..NewRecord::own(record) }, now);
        }
    }
}

impl State {
    pub(super) fn session(&self, tenant: &Tenant, thread: &ThreadId) -> Option<&Session> {
        let at = self.threads.get(&(tenant.clone(), thread.clone()))?.session?;
        Some(&self.sessions[at])
    }

    pub(super) fn session_by_id(&mut self, id: &SessionId) -> Option<&mut Session> {
        self.sessions.iter_mut().find(|session| session.session_id == *id)
    }

    /// The thread's session, made where there is none.
    pub(super) fn session_mut(
        &mut self,
        deployment: &str,
        tenant: &Tenant,
        thread: &ThreadId,
        now: &Now,
    ) -> &mut Session {
        let at = self.session_at(deployment, tenant, thread, now);
        &mut self.sessions[at]
    }

    fn session_at(&mut self, deployment: &str, tenant: &Tenant, thread: &ThreadId, now: &Now) -> usize {
        let of = self.threads.entry((tenant.clone(), thread.clone())).or_default();
        *of.session.get_or_insert_with(|| {
            let id = SessionId::of(deployment, tenant, thread);
            self.sessions.push(Session::new(id, tenant, thread, now));
            self.sessions.len() - 1
        })
    }

    /// Whether these bodies may be pointed to from the thread.
    pub(super) fn check_bodies<'k>(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
        barrier: Option<u64>,
        pointers: impl Iterator<Item = &'k Pointer>,
    ) -> Result<(), RecordsRefusal> {
        let session = self.session(tenant, thread);
        if session.is_some_and(|session| session.state != SessionState::Active) {
            let id = session.map(|session| session.session_id.clone());
            return Err(id.map_or_else(|| RecordsRefusal::PinLost, RecordsRefusal::SessionDeleted));
        }
        let mut keys = pointers.map(|pointer| &pointer.key).peekable();
        if keys.peek().is_none() {
            return Ok(());
        }
        let condemned = session.and_then(|session| keys.find(|key| session.condemned.contains(*key)));
        let latest = session.map_or(0, |session| session.barrier);
        decide::bodies(latest, Some(barrier.unwrap_or_default()), condemned)
    }

    /// Gives a ledger what runs that have ended without one have left.
    pub(super) fn settle(&mut self, deployment: &str, tenant: &Tenant, thread: &ThreadId, now: &Now) {
        let runs: Vec<usize> = (0..self.runs.len())
            .filter(|at| {
                let record = &self.runs[*at].record;
                record.tenant == *tenant && record.thread_id == *thread
            })
            .collect();
        for at in runs {
            if self.runs[at].ledgered == 2 {
                continue;
            }
            self.session_mut(deployment, tenant, thread, now);
            let Some(place) =
                self.sessions.iter().position(|s| s.tenant == *tenant && s.thread_id == *thread)
            else {
                continue;
            };
            let (run, session) = (&mut self.runs[at], &mut self.sessions[place]);
            let record = &run.record;
            let input = run.messages.range(..0).map(|(_, new)| &new.message);
            session
                .add_once(&run_started(&record.run_id, &record.agent, record.model.as_deref(), input), now);
            run.ledgered = 1;
            if !run.is_live() {
                session.take_messages(run, now);
                session.add_once(&run_ended(&run.record), now);
                run.ledgered = 2;
            }
        }
    }

    /// Every body that something of the session points to.
    pub(super) fn pointers(&self, session: &Session) -> Vec<Pointer> {
        let runs = self
            .runs
            .iter()
            .filter(|run| run.record.tenant == session.tenant && run.record.thread_id == session.thread_id);
        let of_runs = runs.flat_map(|run| {
            let events = run.events.iter().filter_map(|event| event.pointer.clone());
            let messages = run
                .messages
                .values()
                .filter_map(|message| message.offloaded.as_ref().map(|offloaded| offloaded.pointer.clone()));
            events.chain(messages)
        });
        let of_records = session.records.iter().filter_map(|record| record.pointer.clone());
        let all: BTreeSet<Pointer> = of_records.chain(of_runs).collect();
        all.into_iter().collect()
    }
}
