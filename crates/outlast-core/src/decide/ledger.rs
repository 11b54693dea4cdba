//! May these records be added?

use std::collections::BTreeMap;

use crate::OwnerId;
use crate::ledger::SessionId;

/// What becomes of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Records may be added.
    Active,
    /// It is being deleted: nothing is added any more.
    Deleting,
    /// It was deleted. What is left says so, so that its thread does not begin again by accident.
    Deleted,
}

impl SessionState {
    /// The stored form.
    pub fn as_str(self) -> &'static str {
        match self {
            SessionState::Active => "active",
            SessionState::Deleting => "deleting",
            SessionState::Deleted => "deleted",
        }
    }

    /// Reads the stored form.
    pub fn parse(text: &str) -> Option<SessionState> {
        [SessionState::Active, SessionState::Deleting, SessionState::Deleted]
            .into_iter()
            .find(|state| state.as_str() == text)
    }
}

/// What the store knows at the moment of the append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordsFacts {
    /// The session.
    pub session_id: SessionId,
    /// Its state.
    pub state: SessionState,
    /// The number of its last record.
    pub tip: u64,
    /// The number of its last barrier; 0: none.
    pub barrier: u64,
    /// Whether the lease that the append names is current; none where it names none.
    pub lease_held: Option<bool>,
    /// Whether the pin that the append names holds; none where it names none.
    pub pin_holds: Option<bool>,
    /// For each record to be added, the one that already has its id: its number and checksum.
    pub existing: Vec<Option<(u64, String)>>,
    /// Keys of bodies that the append points to and that a collection has condemned.
    pub condemned: Vec<String>,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordsAsk<'a> {
    /// Where the writer believes the tip to be; none: it does not matter.
    pub expected_tip: Option<u64>,
    /// Ids and checksums of the records.
    pub records: Vec<(&'a str, &'a str)>,
    /// The barrier that the writer had seen before it put its bodies; none where it has put none.
    pub barrier: Option<u64>,
}

/// What becomes of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordDecision {
    /// It is added.
    Add,
    /// It was added before, with this number; or is, earlier in the same append.
    Added(u64),
}

/// Why nothing was added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordsRefusal {
    /// No such session.
    #[error("there is no session {0}")]
    SessionNotFound(String),
    /// The session was deleted, or is being deleted.
    #[error("session {0} was deleted: its thread cannot be used again, choose another thread id")]
    SessionDeleted(SessionId),
    /// The tip is elsewhere.
    #[error("the ledger's tip is {actual}, not {expected}")]
    TipMoved {
        /// What the writer named.
        expected: u64,
        /// What is so.
        actual: u64,
    },
    /// The id has another record.
    #[error("the record id {id:?} is taken by another record (number {seq})")]
    IdempotencyCollision {
        /// The id.
        id: String,
        /// The number of the record that has it.
        seq: u64,
    },
    /// A collection has begun since the bodies were put: they are to be put again.
    #[error("a collection has begun since the bodies were put (barrier {barrier})")]
    BarrierMoved {
        /// The latest.
        barrier: u64,
    },
    /// A collection has condemned a body: it is to be put under another key.
    #[error("the body {key:?} was condemned by a collection")]
    Condemned {
        /// The key.
        key: String,
    },
    /// The lease is not the writer's any more.
    #[error("the lease on session {session_id} is lost (epoch {epoch})")]
    LeaseLost {
        /// The session.
        session_id: SessionId,
        /// The epoch that the writer held.
        epoch: u64,
    },
    /// The pin has run out: a collection may have taken what the snapshot relies on.
    #[error("the snapshot took too long, and its pin has run out: make it again")]
    PinLost,
}

impl RecordsFacts {
    /// Decides, for all of them together: one refusal refuses all. Those that are added are numbered from the tip on.
    pub fn append(
        &self,
        ask: &RecordsAsk<'_>,
        epoch: Option<u64>,
    ) -> Result<Vec<RecordDecision>, RecordsRefusal> {
        if self.state != SessionState::Active {
            return Err(RecordsRefusal::SessionDeleted(self.session_id.clone()));
        }
        // What was added was added, whoever holds what since: an answer that was lost is given again.
        let mut decisions = Vec::with_capacity(ask.records.len());
        let mut new: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
        for ((id, sum), existing) in ask.records.iter().zip(&self.existing) {
            let existing = existing.as_ref().map(|(seq, sum)| (*seq, sum.as_str()));
            decisions.push(match existing.or_else(|| new.get(id).copied()) {
                None => {
                    new.insert(id, (self.tip + 1 + new.len() as u64, sum));
                    RecordDecision::Add
                }
                Some((seq, known)) if known == *sum => RecordDecision::Added(seq),
                Some((seq, _)) => {
                    return Err(RecordsRefusal::IdempotencyCollision { id: (*id).to_owned(), seq });
                }
            });
        }
        if decisions.iter().all(|decision| matches!(decision, RecordDecision::Added(_))) {
            return Ok(decisions);
        }
        if self.lease_held == Some(false) {
            let epoch = epoch.unwrap_or_default();
            return Err(RecordsRefusal::LeaseLost { session_id: self.session_id.clone(), epoch });
        }
        if self.pin_holds == Some(false) {
            return Err(RecordsRefusal::PinLost);
        }
        if let Some(expected) = ask.expected_tip.filter(|expected| *expected != self.tip) {
            return Err(RecordsRefusal::TipMoved { expected, actual: self.tip });
        }
        self.bodies(ask.barrier)?;
        Ok(decisions)
    }

    /// Whether bodies that were put after this barrier may be pointed to.
    fn bodies(&self, barrier: Option<u64>) -> Result<(), RecordsRefusal> {
        bodies(self.barrier, barrier, self.condemned.first())
    }
}

/// Whether bodies may be pointed to that were put after the barrier `seen`, where `latest` is the latest one, and
/// `condemned` one of their keys that a collection has condemned. None seen: there are no bodies.
///
/// A body that was put before the latest barrier may have been taken for an orphan's by the collection that wrote it. A
/// condemned key is never pointed to again, however long ago: whoever was about to delete it may wake up at any time.
pub fn bodies(latest: u64, seen: Option<u64>, condemned: Option<&String>) -> Result<(), RecordsRefusal> {
    let Some(seen) = seen else { return Ok(()) };
    if seen != latest {
        return Err(RecordsRefusal::BarrierMoved { barrier: latest });
    }
    match condemned {
        Some(key) => Err(RecordsRefusal::Condemned { key: key.clone() }),
        None => Ok(()),
    }
}

/// Why a lease on a session is not granted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeaseRefusal {
    /// No such session.
    #[error("there is no session {0}")]
    SessionNotFound(String),
    /// Somebody else holds it.
    #[error("{what} is held by {owner} (epoch {epoch}) for {remaining} ms more, unless renewed")]
    Held {
        /// The session, or what else is held.
        what: String,
        /// By whom.
        owner: OwnerId,
        /// With which epoch.
        epoch: u64,
        /// For how long, in milliseconds.
        remaining: u64,
    },
}

/// Why a session is not deleted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeleteRefusal {
    /// No such session.
    #[error("there is no session {0}")]
    SessionNotFound(String),
    /// A run of it lives.
    #[error("session {session_id} has a live run, {run_id:?}: wait for its end or cancel it")]
    Live {
        /// The session.
        session_id: SessionId,
        /// The run.
        run_id: crate::RunId,
    },
    /// It has been used since it was found to be old.
    #[error("session {0} has been used since")]
    Used(SessionId),
}
