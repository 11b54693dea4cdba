//! What outlives the delivery log.

use std::time::Duration;

use async_trait::async_trait;
use outlast_core::decide::{RecordDecision, RecordsAsk, RecordsFacts, RecordsRefusal, SessionState};
use outlast_core::ledger::{Decoded, Kind, Pointer, Record, SessionId};
use outlast_core::{Nonce, OwnerId, RunId, Tenant, ThreadId};

use super::MemoryStore;
use super::sessions::Session;
use super::state::{Now, Run, State};
use crate::{
    AcquireLease, AppendRecords, DeleteError, LeaseError, LeaseGranted, LeaseOn, LeaseToken, Ledger,
    ListSessions, MessagePage, MessageRow, Pin, ReadRecords, RecordAppended, RecordPage, RecordsError,
    SessionHead, SessionName, StoreError, StoredRecord, Swept,
};

#[async_trait]
impl Ledger for MemoryStore {
    async fn session(&self, tenant: &Tenant, name: &SessionName) -> Result<Option<SessionHead>, StoreError> {
        let now = self.now();
        let state = self.lock();
        let found = state.sessions.iter().find(|session| {
            session.tenant == *tenant
                && match name {
                    SessionName::Thread(thread) => session.thread_id == *thread,
                    SessionName::Id(id) => session.session_id == *id,
                }
        });
        Ok(found.map(|session| head(&state, session, &now)))
    }

    async fn settle_session(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
    ) -> Result<Option<SessionHead>, StoreError> {
        let now = self.now();
        let mut state = self.lock();
        state.settle(self.deployment(), tenant, thread, &now);
        Ok(state.session(tenant, thread).map(|session| head(&state, session, &now)))
    }

    async fn list_sessions(&self, query: &ListSessions) -> Result<Vec<SessionHead>, StoreError> {
        let now = self.now();
        let state = self.lock();
        let idle = |session: &&Session| {
            query.idle_for.is_none_or(|idle| {
                Now::plus(session.active_at, idle) <= now.wall
                    && !state.has_sandbox(&session.tenant, &session.thread_id)
                    && !state.runs_of(&session.tenant, &session.thread_id).any(Run::is_live)
            })
        };
        let mut found: Vec<&Session> = state
            .sessions
            .iter()
            .filter(|session| query.tenant.as_ref().is_none_or(|tenant| session.tenant == *tenant))
            .filter(|session| query.states.is_empty() || query.states.contains(&session.state))
            .filter(|session| query.after.as_ref().is_none_or(|after| session.session_id > *after))
            .filter(idle)
            .collect();
        if query.newest {
            found.sort_by_key(|session| std::cmp::Reverse((session.active_at, session.session_id.clone())));
        } else {
            found.sort_by_key(|session| session.session_id.clone());
        }
        Ok(found.into_iter().take(query.limit).map(|session| head(&state, session, &now)).collect())
    }

    async fn append_records(&self, append: AppendRecords) -> Result<Vec<RecordAppended>, RecordsError> {
        let now = self.now();
        let mut state = self.lock();
        state.settle(self.deployment(), &append.tenant, &append.thread_id, &now);
        if !append.create && state.session(&append.tenant, &append.thread_id).is_none() {
            let name = SessionName::Thread(append.thread_id);
            return Err(RecordsRefusal::SessionNotFound(name.to_string()).into());
        }
        let lease_held = append.lease.as_ref().map(|lease| state.holds(lease, &now));
        let pin_holds = append.pin.as_ref().map(|pin| state.pins(&now).iter().any(|held| held.pin == *pin));
        let session = state.session_mut(self.deployment(), &append.tenant, &append.thread_id, &now);
        let facts = RecordsFacts {
            session_id: session.session_id.clone(),
            state: session.state,
            tip: session.tip(),
            barrier: session.barrier,
            lease_held,
            pin_holds,
            existing: append.records.iter().map(|new| existing(session, &new.id)).collect(),
            condemned: append
                .records
                .iter()
                .filter_map(|new| new.pointer())
                .filter(|pointer| session.condemned.contains(&pointer.key))
                .map(|pointer| pointer.key.clone())
                .collect(),
        };
        let sums: Vec<String> = append.records.iter().map(crate::NewRecord::sum).collect();
        let ids = append.records.iter().map(|new| new.id.as_str());
        let ask = RecordsAsk {
            expected_tip: append.expected_tip,
            records: ids.zip(sums.iter().map(String::as_str)).collect(),
            barrier: append.barrier_of_bodies(),
        };
        let decided = facts.append(&ask, append.lease.as_ref().map(|lease| lease.epoch))?;
        let appended = decided
            .into_iter()
            .zip(&append.records)
            .map(|(decision, new)| match decision {
                RecordDecision::Add => RecordAppended { seq: session.add(new, &now), appended: true },
                RecordDecision::Added(seq) => RecordAppended { seq, appended: false },
            })
            .collect();
        if let Some(pin) = &append.pin {
            state.pins.remove(pin.as_str());
        }
        Ok(appended)
    }

    async fn read_records(&self, query: &ReadRecords) -> Result<RecordPage, RecordsError> {
        let mut state = self.lock();
        let session = state
            .session_by_id(&query.session_id)
            .ok_or_else(|| RecordsRefusal::SessionNotFound(query.session_id.to_string()))?;
        let passed_over = query.passed_over();
        let wanted = |record: &&StoredRecord| !passed_over.contains(&record.kind.as_str());
        let from = usize::try_from(query.after).unwrap_or(usize::MAX).min(session.records.len());
        let mut rest = session.records[from..].iter().filter(wanted).peekable();
        let (mut records, mut bytes) = (Vec::new(), 0);
        while records.len() < query.max_records
            && bytes < query.max_bytes
            && let Some(record) = rest.next()
        {
            bytes += record.body.len();
            records.push(record.clone());
        }
        Ok(RecordPage { records, tip: session.tip(), more: rest.peek().is_some() })
    }

    async fn thread_messages(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<MessagePage, StoreError> {
        let state = self.lock();
        let session = state.session(tenant, thread);
        let records = session.map(|session| session.records.as_slice()).unwrap_or_default();
        let live: Vec<MessageRow> = match before {
            Some(_) => Vec::new(),
            None => state.runs_of(tenant, thread).flat_map(messages).collect(),
        };
        let mut older = records
            .iter()
            .rev()
            .filter(|record| before.is_none_or(|before| record.seq < before))
            .filter_map(|record| Some((record.seq, message(record)?)))
            .peekable();
        let (mut found, mut first) = (Vec::new(), None);
        while found.len() + live.len() < limit
            && let Some((seq, row)) = older.next()
        {
            first = Some(seq);
            found.push(row);
        }
        let more = older.peek().is_some();
        found.reverse();
        found.extend(live);
        // Of a page that holds only what has no number yet, everything that has one comes before.
        let tip = records.last().map_or(0, |record| record.seq);
        let before = more.then(|| first.or(before).unwrap_or(tip + 1));
        Ok(MessagePage { messages: found, before })
    }

    async fn run_messages(&self, tenant: &Tenant, run_id: &RunId) -> Result<Vec<MessageRow>, StoreError> {
        let state = self.lock();
        let Some(run) = state.find(tenant, run_id) else { return Ok(Vec::new()) };
        if run.ledgered < 2 {
            return Ok(messages(run).collect());
        }
        let session = state.session(tenant, &run.record.thread_id);
        let records = session.map(|session| session.records.as_slice()).unwrap_or_default();
        Ok(records.iter().filter_map(message).filter(|row| row.run_id == *run_id).collect())
    }

    async fn acquire_lease(&self, request: &AcquireLease) -> Result<LeaseGranted, LeaseError> {
        let now = self.now();
        self.lock().acquire_lease(request, &now)
    }

    async fn renew_lease(&self, lease: &LeaseToken, lasts: Duration) -> Result<bool, StoreError> {
        let now = self.now();
        Ok(self.lock().renew_lease(lease, lasts, &now))
    }

    async fn release_lease(&self, lease: &LeaseToken, note: Option<u64>) -> Result<(), StoreError> {
        let now = self.now();
        self.lock().release_lease(lease, note, &now);
        Ok(())
    }

    async fn pointers(&self, session: &SessionId) -> Result<Vec<Pointer>, StoreError> {
        let state = self.lock();
        let found = state.sessions.iter().find(|found| found.session_id == *session);
        Ok(found.map(|session| state.pointers(session)).unwrap_or_default())
    }

    async fn condemn(&self, lease: &LeaseToken, keys: &[String]) -> Result<Vec<String>, RecordsError> {
        let now = self.now();
        let mut state = self.lock();
        let LeaseOn::Session(id) = &lease.on else { return Ok(Vec::new()) };
        if !state.holds(lease, &now) {
            let epoch = lease.epoch;
            return Err(RecordsRefusal::LeaseLost { session_id: id.clone(), epoch }.into());
        }
        let pointed = match state.sessions.iter().find(|session| session.session_id == *id) {
            Some(session) => state.pointers(session),
            None => return Err(RecordsRefusal::SessionNotFound(id.to_string()).into()),
        };
        let Some(session) = state.session_by_id(id) else { return Ok(Vec::new()) };
        for key in keys {
            if !pointed.iter().any(|pointer| pointer.key == *key) {
                session.condemned.insert(key.clone());
            }
        }
        Ok(session.condemned.iter().cloned().collect())
    }

    async fn pin(&self, pin: &Nonce, owner: &OwnerId, lasts: Duration) -> Result<Option<u64>, StoreError> {
        let now = self.now();
        Ok(self.lock().pin(pin, owner, lasts, &now))
    }

    async fn unpin(&self, pin: &Nonce) -> Result<(), StoreError> {
        self.lock().pins.remove(pin.as_str());
        Ok(())
    }

    async fn pins(&self) -> Result<Vec<Pin>, StoreError> {
        let now = self.now();
        Ok(self.lock().pins(&now))
    }

    async fn begin_delete(
        &self,
        tenant: &Tenant,
        name: &SessionName,
        idle_for: Option<Duration>,
    ) -> Result<SessionHead, DeleteError> {
        let now = self.now();
        let mut state = self.lock();
        let id = state.begin_delete(tenant, name, idle_for, &now)?;
        let session = state.sessions.iter().find(|session| session.session_id == id);
        match session {
            Some(session) => Ok(head(&state, session, &now)),
            None => Err(outlast_core::decide::DeleteRefusal::SessionNotFound(name.to_string()).into()),
        }
    }

    async fn delete_rows(&self, session: &SessionId, max_rows: usize) -> Result<Swept, StoreError> {
        Ok(self.lock().delete_rows(session, max_rows))
    }

    async fn end_delete(&self, session: &SessionId) -> Result<(), StoreError> {
        let now = self.now();
        self.lock().end_delete(session, &now);
        Ok(())
    }

    async fn last_agent_session(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
        kind: &str,
        before: &RunId,
    ) -> Result<Option<String>, StoreError> {
        let state = self.lock();
        let before = state.by_id.get(before).copied().unwrap_or(0);
        Ok(state.runs[..before]
            .iter()
            .rev()
            .filter(|run| run.record.tenant == *tenant && run.record.thread_id == *thread)
            .filter(|run| run.record.spec.kind == kind)
            .find_map(|run| run.record.agent_session.clone()))
    }
}

fn head(state: &State, session: &Session, now: &Now) -> SessionHead {
    let lease = state.leases.get(&LeaseOn::Session(session.session_id.clone()).name());
    SessionHead {
        session_id: session.session_id.clone(),
        tenant: session.tenant.clone(),
        thread_id: session.thread_id.clone(),
        state: session.state,
        created_at: session.created_at,
        active_at: session.active_at,
        deleted_at: session.deleted_at,
        tip: session.tip(),
        barrier: session.barrier,
        fold: (session.state != SessionState::Deleted).then(|| session.fold.clone()),
        lease: lease.and_then(|lease| lease.seen(now)),
        note: lease.and_then(|lease| lease.note),
    }
}

fn existing(session: &Session, id: &str) -> Option<(u64, String)> {
    let seq = *session.ids.get(id)?;
    let record = session.records.get(usize::try_from(seq).ok()? - 1)?;
    Some((seq, record.sum.clone()))
}

fn messages(run: &Run) -> impl Iterator<Item = MessageRow> {
    run.messages.values().map(|new| MessageRow {
        run_id: run.record.run_id.clone(),
        ordinal: new.ordinal,
        message: new.message.clone(),
        pointer: new.offloaded.as_ref().map(|offloaded| offloaded.pointer.clone()),
    })
}

fn message(record: &StoredRecord) -> Option<MessageRow> {
    if record.kind != Kind::Message.as_str() {
        return None;
    }
    let Ok(Decoded::Known(known)) = record.decode() else { return None };
    let Record::Message { run_id, ordinal, message } = *known else { return None };
    Some(MessageRow { run_id, ordinal, message, pointer: record.pointer.clone() })
}
