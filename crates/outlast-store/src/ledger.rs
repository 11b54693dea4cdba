//! What the operations on sessions take and give.

use std::time::Duration;

use outlast_core::decide::{LeaseRefusal, SessionState};
use outlast_core::ledger::{
    Decoded, Fold, Kind, Pointer, Record, RecordError, RunEnded, RunStarted, SessionId, checksum, title,
};
use outlast_core::run::RunRecord;
use outlast_core::transcript::{Message, Role};
use outlast_core::{Nonce, OwnerId, RunId, Tenant, ThreadId};

/// Where a body was put that is too large for the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offloaded {
    /// Where it is.
    pub pointer: Pointer,
    /// The checksum of the record as a whole ([`checksum`]), by which it is known again.
    pub sum: String,
}

/// A message for the transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// Its place within the run: negative for those of the turn's input, else the number of the event that began it.
    pub ordinal: i64,
    /// The message; where its body was off-loaded, what stands for it.
    pub message: Message,
    /// Where its body is, where that was off-loaded.
    pub offloaded: Option<Offloaded>,
}

impl NewMessage {
    /// A message that says what it is itself.
    pub fn new(ordinal: i64, message: Message) -> NewMessage {
        NewMessage { ordinal, message, offloaded: None }
    }

    /// The messages of a turn's input, which stand before its first event.
    pub fn input(messages: Vec<Message>) -> Vec<NewMessage> {
        let first = -(messages.len() as i64);
        (first..).zip(messages).map(|(ordinal, message)| NewMessage::new(ordinal, message)).collect()
    }
}

/// A message of the transcript, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRow {
    /// The run.
    pub run_id: RunId,
    /// Its place within the run, as in [`NewMessage`].
    pub ordinal: i64,
    /// The message; where its body was off-loaded, what stands for it.
    pub message: Message,
    /// Where its body is, where that was off-loaded.
    pub pointer: Option<Pointer>,
}

/// A piece of a thread's transcript: its runs in the order of their acceptance, and within each by ordinal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessagePage {
    /// The messages, the oldest first.
    pub messages: Vec<MessageRow>,
    /// Where the page before this one ends: what to ask for to get it. None: there is none.
    pub before: Option<u64>,
}

/// A record for a ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRecord {
    /// Its id within the session. The same id and content again add nothing.
    pub id: String,
    /// What it says; where its body was off-loaded, what stands for it.
    pub record: Record,
    /// Where its body is, where that was off-loaded.
    pub offloaded: Option<Offloaded>,
    /// When it was written, in milliseconds since 1970, where that was elsewhere; none: when it is stored.
    pub at: Option<u64>,
}

impl NewRecord {
    /// A record that says what it is itself.
    pub fn new(id: impl Into<String>, record: Record) -> NewRecord {
        NewRecord { id: id.into(), record, offloaded: None, at: None }
    }

    /// A record that was written elsewhere at this time, in milliseconds since 1970, and keeps it.
    pub fn written_at(at: u64, id: impl Into<String>, record: Record) -> NewRecord {
        NewRecord { at: Some(at), ..NewRecord::new(id, record) }
    }

    /// A record that is told apart by what it says ([`Record::own_id`]).
    pub(crate) fn own(record: Record) -> NewRecord {
        let id = record.own_id().unwrap_or_else(|| unreachable!("only called for those that have one"));
        NewRecord::new(id, record)
    }

    /// By which it is known again.
    pub fn sum(&self) -> String {
        match &self.offloaded {
            Some(offloaded) => offloaded.sum.clone(),
            None => checksum(self.record.kind().as_str(), &self.id, &self.record.body()),
        }
    }

    /// Where its body is.
    pub fn pointer(&self) -> Option<&Pointer> {
        self.offloaded.as_ref().map(|offloaded| &offloaded.pointer)
    }
}

/// The record of a run's start. `messages` are the turn's input, of which the first that a user says is the title.
pub fn run_started<'m>(
    run_id: &RunId,
    agent: &str,
    model: Option<&str>,
    messages: impl IntoIterator<Item = &'m Message>,
) -> NewRecord {
    let said = messages.into_iter().find(|message| message.role == Role::User);
    NewRecord::own(Record::RunStarted(RunStarted {
        run_id: run_id.clone(),
        agent: agent.to_owned(),
        model: model.map(ToOwned::to_owned),
        title: said.and_then(|message| title(message.content.as_deref().unwrap_or_default())),
    }))
}

/// The record of a run's end.
pub fn run_ended(run: &RunRecord) -> NewRecord {
    NewRecord::own(Record::RunEnded(RunEnded {
        run_id: run.run_id.clone(),
        status: run.status,
        end_reason: run.end_reason,
        error: run.error.clone(),
        exit_code: run.exit_code,
        usage: run.usage.clone(),
    }))
}

/// Records to add, all or none. See [`crate::Ledger::append_records`].
#[derive(Debug, Clone)]
pub struct AppendRecords {
    /// Whose.
    pub tenant: Tenant,
    /// To which thread's ledger.
    pub thread_id: ThreadId,
    /// Where the writer believes the ledger's tip to be; none: it does not matter.
    pub expected_tip: Option<u64>,
    /// The barrier that was seen before bodies were put; none where none was, and for the records' bodies as if there had
    /// been no barrier yet.
    pub barrier: Option<u64>,
    /// Only while this lease on the session is held.
    pub lease: Option<LeaseToken>,
    /// Only while this pin holds, which is let go of in the same transaction.
    pub pin: Option<Nonce>,
    /// Whether a thread that has never had a run gets a session.
    pub create: bool,
    /// The records.
    pub records: Vec<NewRecord>,
}

impl AppendRecords {
    /// What [`outlast_core::decide::RecordsAsk::barrier`] is: none where nothing points anywhere.
    pub fn barrier_of_bodies(&self) -> Option<u64> {
        let points = self.records.iter().any(|new| new.pointer().is_some());
        points.then_some(self.barrier.unwrap_or_default())
    }
}

/// What became of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordAppended {
    /// Its number.
    pub seq: u64,
    /// Whether this call added it. Otherwise it was there before.
    pub appended: bool,
}

/// A record as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// Its number: from 1, without gaps.
    pub seq: u64,
    /// When it was stored, in milliseconds since 1970.
    pub at: u64,
    /// Its id.
    pub id: String,
    /// What it is; may be a kind that this program does not know.
    pub kind: String,
    /// Whether such a program may pass over it.
    pub skip: bool,
    /// The checksum of the record as a whole.
    pub sum: String,
    /// Its body as JSON; where that was off-loaded, what stands for it.
    pub body: String,
    /// Where its body is, where that was off-loaded.
    pub pointer: Option<Pointer>,
}

impl StoredRecord {
    /// What it says, or stands for it. Without a look at the checksum.
    pub fn decode(&self) -> Result<Decoded, RecordError> {
        Record::decode(&self.kind, self.skip, &self.id, &self.body)
    }

    /// Whether it is what was written. Of a body that is elsewhere, only that shows it.
    pub fn is_intact(&self) -> bool {
        self.pointer.is_some() || checksum(&self.kind, &self.id, &self.body) == self.sum
    }
}

/// Which records to read: from the oldest, in pages.
#[derive(Debug, Clone)]
pub struct ReadRecords {
    /// Of which session.
    pub session_id: SessionId,
    /// Only those after this number.
    pub after: u64,
    /// Only of these kinds, and of those that this program does not know: who looks for something of a newer program's must
    /// learn that there is something that it cannot judge. Empty: all.
    pub kinds: Vec<Kind>,
    /// At most so many.
    pub max_records: usize,
    /// No further record once so many bytes of bodies are reached.
    pub max_bytes: usize,
}

impl ReadRecords {
    /// The stored forms of the kinds that are not wanted; none where all are.
    pub fn passed_over(&self) -> Vec<&'static str> {
        let unwanted = |kind: &Kind| !self.kinds.is_empty() && !self.kinds.contains(kind);
        Kind::ALL.into_iter().filter(unwanted).map(Kind::as_str).collect()
    }

    /// Whether it is for nothing but what tells of the workspace, of which there is little among much.
    pub fn is_of_workspace(&self) -> bool {
        let of_workspace =
            |kind: &Kind| matches!(kind, Kind::WorkspaceCheckpointed | Kind::WorkspaceRestored);
        !self.kinds.is_empty() && self.kinds.iter().all(of_workspace)
    }
}

/// A piece of a ledger, from one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordPage {
    /// The records, in order.
    pub records: Vec<StoredRecord>,
    /// The number of the ledger's last record.
    pub tip: u64,
    /// Whether there are more after these.
    pub more: bool,
}

/// How a session is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionName {
    /// By its thread.
    Thread(ThreadId),
    /// By its id.
    Id(SessionId),
}

impl std::fmt::Display for SessionName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SessionName::Thread(thread) => write!(f, "of thread {thread:?}"),
            SessionName::Id(id) => write!(f, "{id}"),
        }
    }
}

/// A session, without its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionHead {
    /// The session.
    pub session_id: SessionId,
    /// Whose it is.
    pub tenant: Tenant,
    /// Its thread.
    pub thread_id: ThreadId,
    /// What becomes of it.
    pub state: SessionState,
    /// When it began, in milliseconds since 1970.
    pub created_at: u64,
    /// When something happened last that was no upkeep, in milliseconds since 1970.
    pub active_at: u64,
    /// When it was deleted, in milliseconds since 1970.
    pub deleted_at: Option<u64>,
    /// The number of its last record.
    pub tip: u64,
    /// The number of its last barrier; 0: none.
    pub barrier: u64,
    /// What its records amount to. None where another version has kept it: it is folded again by whoever needs it.
    pub fold: Option<Fold>,
    /// Who holds the lease on it.
    pub lease: Option<LeaseSeen>,
    /// What the last holder noted, and when: a collector the tip up to which it has collected.
    pub note: Option<(u64, u64)>,
}

/// Which sessions to list.
#[derive(Debug, Clone, Default)]
pub struct ListSessions {
    /// Only of this tenant.
    pub tenant: Option<Tenant>,
    /// Only in one of these states; empty: all.
    pub states: Vec<SessionState>,
    /// Only those in which nothing has happened for so long, that have no live run, and whose sandboxes are gone.
    pub idle_for: Option<Duration>,
    /// The last active first, without pages. Otherwise by id, so that pages are complete whatever happens meanwhile.
    pub newest: bool,
    /// Only those that come after this one.
    pub after: Option<SessionId>,
    /// At most so many.
    pub limit: usize,
}

/// What a lease is on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LeaseOn {
    /// A session's upkeep: its collection, its deletion, the end of its activity.
    Session(SessionId),
    /// The collection of snapshots.
    Workspaces,
}

impl LeaseOn {
    /// The stored form.
    pub fn name(&self) -> String {
        match self {
            LeaseOn::Session(session) => format!("session/{session}"),
            LeaseOn::Workspaces => "workspaces".to_owned(),
        }
    }

    /// The refusal that says who holds it.
    pub fn held(&self, seen: LeaseSeen) -> LeaseRefusal {
        let what = match self {
            LeaseOn::Session(session) => format!("session {session}"),
            LeaseOn::Workspaces => "the collection of snapshots".to_owned(),
        };
        LeaseRefusal::Held { what, owner: seen.owner, epoch: seen.epoch, remaining: seen.remaining }
    }
}

/// A wish for a lease.
#[derive(Debug, Clone)]
pub struct AcquireLease {
    /// On what.
    pub on: LeaseOn,
    /// Who would hold it.
    pub owner: OwnerId,
    /// Drawn for this request; the same request again is answered as the first was.
    pub nonce: Nonce,
    /// For how long it runs unless renewed.
    pub lasts: Duration,
}

/// Proof of a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseToken {
    /// On what.
    pub on: LeaseOn,
    /// Who holds it.
    pub owner: OwnerId,
    /// Rises with every grant.
    pub epoch: u64,
    /// Drawn for this lease.
    pub nonce: Nonce,
}

/// A granted lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseGranted {
    /// Proof of it.
    pub token: LeaseToken,
    /// What its last holder noted, and when, in milliseconds since 1970.
    pub note: Option<(u64, u64)>,
}

/// A lease as others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseSeen {
    /// Who holds it.
    pub owner: OwnerId,
    /// With which epoch.
    pub epoch: u64,
    /// For how much longer unless renewed, in milliseconds.
    pub remaining: u64,
}

/// What a snapshot in progress relies on is not deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// Its name.
    pub pin: Nonce,
    /// Who holds it.
    pub owner: OwnerId,
    /// Since when, in milliseconds since 1970.
    pub since: u64,
}
