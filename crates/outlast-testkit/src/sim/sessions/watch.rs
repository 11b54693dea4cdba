//! Looks at every change at the moment at which it is made, and remembers what was promised.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::FutureExt;
use outlast_core::decide::SessionState;
use outlast_core::ledger::{Pointer, Record, SessionId};
use outlast_core::{RunId, Tenant, ThreadId};
use outlast_store::{
    Accept, AcceptError, Accepted, Append, AppendRecords, DeleteError, Finish, FinishError, Finished, Ledger,
    MemoryStore, RecordAppended, RecordsError, SessionHead, SessionName,
};
use sha2::{Digest, Sha256};

use super::bucket::Bucket;
use super::objects::short;
use crate::sim::history::History;

/// Sees all that is done, by whichever host.
#[derive(Debug)]
pub(in crate::sim) struct Watch {
    store: MemoryStore,
    deployment: String,
    bucket: Bucket,
    history: History,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    broken: Vec<String>,
    /// Sessions into which something is being put, and whose deletion would come at the worst moment.
    urged: Vec<SessionId>,
    /// Since which step each session is being deleted.
    deleting: BTreeMap<SessionId, u64>,
    /// Runs that live, and their threads.
    live: BTreeMap<RunId, ThreadId>,
    /// Sessions whose end was recorded under the lease with this epoch.
    stopped: BTreeSet<(SessionId, u64)>,
    /// What was acknowledged: the number and the content of each record.
    acked: BTreeMap<(ThreadId, String), (u64, Record)>,
}

/// Under which lease something is deleted.
pub(super) type Under = (SessionId, u64);

impl Watch {
    pub(super) fn new(store: MemoryStore, deployment: String, bucket: Bucket, history: History) -> Watch {
        Watch { store, deployment, bucket, history, seen: Mutex::default() }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn say(&self, what: String) {
        self.history.note(format!("BROKEN: {what}"));
        self.seen().broken.push(what);
    }

    pub(super) fn take_broken(&self) -> Vec<String> {
        std::mem::take(&mut self.seen().broken)
    }

    pub(super) fn acked(&self) -> BTreeMap<(ThreadId, String), (u64, Record)> {
        self.seen().acked.clone()
    }

    pub(super) fn session_of(&self, thread: &ThreadId) -> SessionId {
        SessionId::of(&self.deployment, &Tenant::default(), thread)
    }

    fn head(&self, session: &SessionId) -> Option<SessionHead> {
        let name = SessionName::Id(session.clone());
        self.store.session(&Tenant::default(), &name).now_or_never()?.ok()?
    }

    /// Whatever is pointed to is there, and is what its name says.
    fn pointed<'p>(&self, who: &str, pointers: impl Iterator<Item = &'p Pointer>) {
        for pointer in pointers {
            match self.bucket.get(&pointer.key) {
                None => self.say(format!("{who} points to {}, which is not there", short(&pointer.key))),
                Some(object) if object.body.len() as u64 != pointer.size => {
                    self.say(format!("{who} points to {}, which is another", short(&pointer.key)));
                }
                Some(_) => {}
            }
        }
    }

    /// Nothing is added once a deletion has begun.
    fn added(&self, who: &str, session: &SessionId) {
        if self.seen().deleting.contains_key(session) {
            self.say(format!("{who} is added to {session}, which is being deleted"));
        }
    }

    pub(in crate::sim) fn recorded(
        &self,
        append: &AppendRecords,
        done: &Result<Vec<RecordAppended>, RecordsError>,
    ) {
        let Ok(done) = done else { return };
        let session = self.session_of(&append.thread_id);
        if !done.iter().any(|appended| appended.appended) {
            return;
        }
        self.added("a record", &session);
        let new = append.records.iter().zip(done).filter(|(_, done)| done.appended);
        self.pointed("a record", new.filter_map(|(new, _)| new.pointer()));
        let stops = append.records.iter().any(|new| matches!(new.record, Record::SessionStopped(_)));
        let Some(lease) = append.lease.as_ref().filter(|_| stops) else { return };
        let live = self.seen().live.values().any(|thread| *thread == append.thread_id);
        if live {
            self.say(format!("{session} has stopped while a run lives"));
        }
        self.seen().stopped.insert((session, lease.epoch));
    }

    pub(in crate::sim) fn accepted(&self, request: &Accept, done: &Result<Accepted, AcceptError>) {
        let Ok(Accepted::New(_)) = done else { return };
        let before = self.seen().live.insert(request.run_id.clone(), request.thread_id.clone());
        if before.is_some() {
            return;
        }
        self.added("a run", &self.session_of(&request.thread_id));
        let offloaded = request.messages.iter().filter_map(|message| message.offloaded.as_ref());
        self.pointed("a run's input", offloaded.map(|offloaded| &offloaded.pointer));
    }

    pub(in crate::sim) fn appended(&self, append: &Append, done: bool) {
        let Some(thread) = self.seen().live.get(&append.token.run_id).cloned().filter(|_| done) else {
            return;
        };
        let of_messages = append.messages.iter().filter_map(|message| message.offloaded.as_ref());
        let of_events = append.events.iter().filter_map(|event| event.pointer.as_ref());
        let all: Vec<&Pointer> = of_events.chain(of_messages.map(|offloaded| &offloaded.pointer)).collect();
        // An answer given again may be of an append whose bodies had other keys.
        let stored = self.store.pointers(&self.session_of(&thread)).now_or_never();
        let stored = stored.and_then(Result::ok).unwrap_or_default();
        if all.iter().all(|pointer| stored.contains(pointer)) {
            self.pointed("a run", all.into_iter());
        }
    }

    pub(in crate::sim) fn finished(&self, finish: &Finish, done: &Result<Finished, FinishError>) {
        self.appended(&finish.append, done.is_ok());
        if done.is_ok() {
            self.seen().live.remove(&finish.append.token.run_id);
        }
    }

    pub(in crate::sim) fn deletion_begun(&self, done: &Result<SessionHead, DeleteError>) {
        let Ok(session) = done else { return };
        let step = self.bucket.step();
        self.seen().deleting.entry(session.session_id.clone()).or_insert(step);
    }

    /// All that was there when the deletion began has gone before it ends.
    pub(in crate::sim) fn deletion_ended(&self, session: &SessionId) {
        let begun = self.seen().deleting.get(session).copied();
        let deleted = self.head(session).is_some_and(|head| head.state == SessionState::Deleted);
        let Some(begun) = begun.filter(|_| deleted) else { return };
        for (key, object) in self.bucket.beneath(&format!("{}/", session.objects_prefix())) {
            if object.step < begun {
                self.say(format!("{session} is deleted and {} is there", short(&key)));
            }
        }
    }

    /// Whether the object lay in a session that was deleted.
    pub(super) fn was_deleted(&self, key: &str) -> bool {
        session_of_key(key).is_some_and(|session| self.seen().deleting.contains_key(&session))
    }

    pub(super) fn putting(&self, key: &str, body: &Bytes) {
        if !key.ends_with(&outlast_core::hex::encode(&Sha256::digest(body))) {
            self.say(format!("{} is put with another content", short(key)));
        }
    }

    /// Now would be the worst moment to delete the session of this object.
    pub(super) fn urge(&self, key: &str) {
        self.seen().urged.extend(session_of_key(key));
    }

    pub(super) fn take_urged(&self) -> Option<SessionId> {
        self.seen().urged.pop()
    }

    /// Whoever begins to delete holds the lease on the session.
    pub(super) fn deleting(&self, host: &str, key: &str) -> Option<Under> {
        let session = session_of_key(key);
        let lease = session.as_ref().and_then(|session| self.head(session)).and_then(|head| head.lease);
        match (session, lease) {
            (Some(session), Some(lease)) if lease.owner.as_str() == host => Some((session, lease.epoch)),
            (_, lease) => {
                self.say(format!("{host} deletes {} without the lease, which {lease:?} has", short(key)));
                None
            }
        }
    }

    /// Nothing points to what is gone; and nothing goes once the end of the activity was recorded under the same lease.
    pub(super) fn deleted(&self, key: &str, under: Option<Under>) {
        let Some(session) = session_of_key(key) else { return };
        let pointers = self.store.pointers(&session).now_or_never().and_then(Result::ok).unwrap_or_default();
        let deleting = self.seen().deleting.contains_key(&session);
        if !deleting && pointers.iter().any(|pointer| pointer.key == key) {
            self.say(format!("{} is deleted and pointed to", short(key)));
        }
        if under.is_some_and(|under| self.seen().stopped.contains(&under)) {
            self.say(format!("{} is deleted after its session's end was recorded", short(key)));
        }
    }

    /// A client was told that these are in the ledger.
    pub(super) fn acknowledged(&self, append: &AppendRecords, done: &[RecordAppended]) {
        if done.len() != append.records.len() {
            self.say(format!("{} answers for {} records", done.len(), append.records.len()));
        }
        for (new, appended) in append.records.iter().zip(done) {
            let place = (append.thread_id.clone(), new.id.clone());
            let before = self.seen().acked.insert(place, (appended.seq, new.record.clone()));
            if before.is_some_and(|(seq, _)| seq != appended.seq) {
                self.say(format!("{} has two numbers", new.id));
            }
        }
    }
}

/// The session to which an object belongs.
fn session_of_key(key: &str) -> Option<SessionId> {
    let id = key.strip_prefix("sessions/")?.split('/').next()?;
    SessionId::parse(id).ok()
}
