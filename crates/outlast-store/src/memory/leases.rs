//! Leases, pins and the end of sessions.

use std::time::Duration;

use outlast_core::decide::{DeleteRefusal, LeaseRefusal, SessionState};
use outlast_core::ledger::SessionId;
use outlast_core::{Nonce, OwnerId, Tenant};

use super::state::{Now, State};
use crate::{
    AcquireLease, DeleteError, InstanceState, LeaseError, LeaseGranted, LeaseOn, LeaseSeen, LeaseToken, Pin,
    SessionName, Swept,
};

/// A lease, held or given back.
#[derive(Debug, Default)]
pub(super) struct LeaseRow {
    pub(super) epoch: u64,
    /// Owner, nonce, boot and end of whoever holds it.
    pub(super) held: Option<(OwnerId, Nonce, String, u64)>,
    pub(super) note: Option<(u64, u64)>,
}

impl LeaseRow {
    /// Who holds it, and for how much longer.
    pub(super) fn seen(&self, now: &Now) -> Option<LeaseSeen> {
        let (owner, _, boot, until) = self.held.as_ref()?;
        let remaining = if *boot == now.boot_id { until.saturating_sub(now.boot) } else { 0 };
        (remaining > 0).then(|| LeaseSeen { owner: owner.clone(), epoch: self.epoch, remaining })
    }
}

impl State {
    pub(super) fn holds(&self, lease: &LeaseToken, now: &Now) -> bool {
        self.leases.get(&lease.on.name()).is_some_and(|row| {
            row.epoch == lease.epoch
                && row.held.as_ref().is_some_and(|(_, nonce, ..)| *nonce == lease.nonce)
                && row.seen(now).is_some()
        })
    }

    pub(super) fn acquire_lease(
        &mut self,
        request: &AcquireLease,
        now: &Now,
    ) -> Result<LeaseGranted, LeaseError> {
        if let LeaseOn::Session(session) = &request.on
            && self.session_by_id(session).is_none()
        {
            return Err(LeaseRefusal::SessionNotFound(session.to_string()).into());
        }
        let row = self.leases.entry(request.on.name()).or_default();
        let again = row
            .held
            .as_ref()
            .is_some_and(|(owner, nonce, ..)| (owner, nonce) == (&request.owner, &request.nonce));
        if let Some(seen) = row.seen(now).filter(|_| !again) {
            return Err(request.on.held(seen).into());
        }
        row.epoch += u64::from(!again);
        let until = Now::plus(now.boot, request.lasts);
        row.held = Some((request.owner.clone(), request.nonce.clone(), now.boot_id.clone(), until));
        let token = LeaseToken {
            on: request.on.clone(),
            owner: request.owner.clone(),
            epoch: row.epoch,
            nonce: request.nonce.clone(),
        };
        Ok(LeaseGranted { token, note: row.note })
    }

    pub(super) fn renew_lease(&mut self, lease: &LeaseToken, lasts: Duration, now: &Now) -> bool {
        if !self.holds(lease, now) {
            return false;
        }
        if let Some((_, _, _, until)) =
            self.leases.get_mut(&lease.on.name()).and_then(|row| row.held.as_mut())
        {
            *until = Now::plus(now.boot, lasts);
        }
        true
    }

    pub(super) fn release_lease(&mut self, lease: &LeaseToken, note: Option<u64>, now: &Now) {
        if self.holds(lease, now)
            && let Some(row) = self.leases.get_mut(&lease.on.name())
        {
            row.held = None;
            row.note = note.map(|note| (note, now.wall)).or(row.note);
        }
    }

    pub(super) fn pin(&mut self, pin: &Nonce, owner: &OwnerId, lasts: Duration, now: &Now) -> Option<u64> {
        let until = Now::plus(now.wall, lasts);
        let (_, since, end) =
            self.pins.entry(pin.as_str().to_owned()).or_insert_with(|| (owner.clone(), now.wall, until));
        if *end <= now.wall {
            return None;
        }
        *end = until;
        Some(*since)
    }

    pub(super) fn pins(&self, now: &Now) -> Vec<Pin> {
        let held = self.pins.iter().filter(|(_, (_, _, until))| *until > now.wall);
        held.map(|(pin, (owner, since, _))| Pin {
            pin: Nonce::from_stored(pin.as_str()),
            owner: owner.clone(),
            since: *since,
        })
        .collect()
    }

    pub(super) fn begin_delete(
        &mut self,
        tenant: &Tenant,
        name: &SessionName,
        idle_for: Option<Duration>,
        now: &Now,
    ) -> Result<SessionId, DeleteError> {
        let found = self.sessions.iter().position(|session| {
            session.tenant == *tenant
                && match name {
                    SessionName::Thread(thread) => session.thread_id == *thread,
                    SessionName::Id(id) => session.session_id == *id,
                }
        });
        let Some(at) = found else {
            return Err(DeleteRefusal::SessionNotFound(name.to_string()).into());
        };
        let session = &self.sessions[at];
        let id = session.session_id.clone();
        let live = self.runs_of(&session.tenant, &session.thread_id).find(|run| run.is_live());
        if let Some(run) = live {
            return Err(DeleteRefusal::Live { session_id: id, run_id: run.record.run_id.clone() }.into());
        }
        let used = idle_for.is_some_and(|idle| Now::plus(session.active_at, idle) > now.wall);
        if session.state == SessionState::Active && used {
            return Err(DeleteRefusal::Used(id).into());
        }
        if session.state == SessionState::Active {
            self.sessions[at].state = SessionState::Deleting;
        }
        Ok(id)
    }

    pub(super) fn delete_rows(&mut self, id: &SessionId, max_rows: usize) -> Swept {
        let mut swept = Swept::default();
        let Some(at) = self.sessions.iter().position(|session| session.session_id == *id) else {
            return swept;
        };
        if self.sessions[at].state != SessionState::Deleting {
            return swept;
        }
        let (tenant, thread) = (self.sessions[at].tenant.clone(), self.sessions[at].thread_id.clone());
        let mut going = std::collections::HashSet::new();
        let mut more = false;
        for run in self.runs_of(&tenant, &thread) {
            if swept.rows >= max_rows as u64 {
                more = true;
                break;
            }
            swept.rows += 2 + (run.events.len() + run.messages.len()) as u64;
            swept.runs += 1;
            going.insert(run.record.run_id.clone());
        }
        self.keep_runs(|run| !going.contains(&run.record.run_id));
        let session = &mut self.sessions[at];
        if !more {
            swept.rows += session.records.len() as u64;
            session.records.clear();
            session.ids.clear();
        }
        Swept { more, ..swept }
    }

    pub(super) fn end_delete(&mut self, id: &SessionId, now: &Now) {
        if let Some(session) = self.session_by_id(id)
            && session.state == SessionState::Deleting
        {
            session.state = SessionState::Deleted;
            session.deleted_at = Some(now.wall);
            session.fold = outlast_core::ledger::Fold::empty();
            session.condemned.clear();
        }
    }

    /// Whether a sandbox of the session's thread is not gone yet.
    pub(super) fn has_sandbox(&self, tenant: &Tenant, thread: &outlast_core::ThreadId) -> bool {
        self.instances.iter().any(|instance| {
            instance.state != InstanceState::Gone
                && instance.tenant == *tenant
                && instance.thread_id.as_ref() == Some(thread)
        })
    }
}
