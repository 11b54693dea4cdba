//! What the operations take and give.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::NewMessage;
use outlast_core::decide::{AcceptAsk, ClaimAsk, EndVerdict};
use outlast_core::duration::millis;
use outlast_core::event::{Chunk, Origin};
use outlast_core::ledger::Pointer;
use outlast_core::run::{
    Cancel, CancelReason, ClaimToken, Cursor, LaunchSpec, OnDisconnect, Purpose, RunRecord, Status, Usage,
};
use outlast_core::{InstanceId, Nonce, OwnerId, RunId, Seq, Tenant, ThreadId};

/// A new run. See [`crate::Runs::accept`].
#[derive(Debug, Clone)]
pub struct Accept {
    /// Whose it is.
    pub tenant: Tenant,
    /// Its id.
    pub run_id: RunId,
    /// Its thread.
    pub thread_id: ThreadId,
    /// Whether the caller chose the thread. If not, the thread is no reason for a conflict.
    pub thread_chosen: bool,
    /// How to launch it.
    pub spec: LaunchSpec,
    /// The digest of the request ([`outlast_core::run::request_digest`]).
    pub digest: String,
    /// Who accepts it, and thereby holds the claim of epoch 1.
    pub owner: OwnerId,
    /// Drawn for this request; it becomes that claim's. The same request again, while the claim is current, is answered
    /// as the first was.
    pub nonce: Nonce,
    /// For how long that claim's lease runs.
    pub lease: Duration,
    /// How long it may go on without a viewer; none: for ever.
    pub detached_ttl: Option<Duration>,
    /// What happens when the last viewer leaves.
    pub on_disconnect: OnDisconnect,
    /// The turn's new messages: the user's ([`NewMessage::input`]).
    pub messages: Vec<NewMessage>,
    /// The barrier that was seen before bodies of these messages were put; none where none was.
    pub barrier: Option<u64>,
    /// The first events of the log, `run.accepted` first.
    pub events: Vec<Chunk>,
}

impl Accept {
    /// What [`outlast_core::decide::accept`] is asked.
    pub fn ask(&self) -> AcceptAsk<'_> {
        AcceptAsk {
            run_id: &self.run_id,
            thread_id: &self.thread_id,
            thread_chosen: self.thread_chosen,
            digest: &self.digest,
            workspace: self.spec.workspace.as_ref().map(|workspace| workspace.path.as_str()),
            owner: &self.owner,
            nonce: &self.nonce,
        }
    }

    /// Proof of the claim that comes with a new run.
    pub fn token(&self) -> ClaimToken {
        ClaimToken {
            run_id: self.run_id.clone(),
            owner: self.owner.clone(),
            epoch: 1,
            nonce: self.nonce.clone(),
        }
    }
}

/// The answer to [`Accept`].
#[derive(Debug, Clone)]
pub enum Accepted {
    /// The run is recorded, with the claim that its producer holds from now on.
    New(Box<Claimed>),
    /// The same request was made before. Nothing was written.
    Existing(Box<RunRecord>),
}

/// A wish for a claim. See [`crate::Runs::claim`].
#[derive(Debug, Clone)]
pub struct Claim {
    /// The run.
    pub run_id: RunId,
    /// Who would hold it.
    pub owner: OwnerId,
    /// Drawn for this request; it becomes the claim's. The same request again, while the claim is current, is granted
    /// with the same epoch and a lease from now.
    pub nonce: Nonce,
    /// What for.
    pub purpose: Purpose,
    /// For how long its lease runs.
    pub lease: Duration,
    /// Only where nobody has watched the run for at least so long.
    pub detached_for: Option<Duration>,
}

impl Claim {
    /// What [`outlast_core::decide::claim`] is asked.
    pub fn ask(&self) -> ClaimAsk<'_> {
        ClaimAsk {
            owner: &self.owner,
            nonce: &self.nonce,
            purpose: self.purpose,
            detached_for: self.detached_for.map(millis),
        }
    }

    /// Proof of the claim once it is granted.
    pub fn token(&self, epoch: u64) -> ClaimToken {
        ClaimToken {
            run_id: self.run_id.clone(),
            owner: self.owner.clone(),
            epoch,
            nonce: self.nonce.clone(),
        }
    }
}

/// A granted claim.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// Proof of it.
    pub token: ClaimToken,
    /// The run as of the grant.
    pub run: RunRecord,
}

/// One renewed claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewed {
    /// The run.
    pub run_id: RunId,
    /// The claim's epoch.
    pub epoch: u64,
    /// How long its lease runs, from when the renewal was asked for. Less than was asked for where somebody else held the
    /// run's row for so long that the others would have had to wait: the claim is held, and is to be renewed again.
    pub lease: Duration,
    /// Whether the run is to stop.
    pub cancel: Option<Cancel>,
}

/// An event for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// Where it came from.
    pub origin: Origin,
    /// What it says; where its body was off-loaded, what stands for it.
    pub chunk: Chunk,
    /// Where its body is, where that was off-loaded.
    pub pointer: Option<Pointer>,
}

impl NewEvent {
    /// An event that says what it is itself.
    pub fn new(origin: Origin, chunk: Chunk) -> NewEvent {
        NewEvent { origin, chunk, pointer: None }
    }
}

/// Events to add, all or none.
#[derive(Debug, Clone)]
pub struct Append {
    /// The writer's claim.
    pub token: ClaimToken,
    /// Where the writer believes the log's tail to be.
    pub expected_tail: Seq,
    /// Drawn for this append. The same append again is answered as the first was.
    pub batch: Nonce,
    /// What to add.
    pub events: Vec<NewEvent>,
    /// Where the driver is after them.
    pub cursor: Option<Cursor>,
    /// Messages that these events complete or change.
    pub messages: Vec<NewMessage>,
    /// The barrier that was seen before bodies of these events and messages were put; none where none was.
    pub barrier: Option<u64>,
    /// The session in the agent's own words, once it is known.
    pub agent_session: Option<String>,
}

/// The answer to [`Append`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The number of the last event.
    pub tail: Seq,
}

/// The end of a run, in one transaction: the last events (the terminal one last), the closed log, the terminal status
/// and the sealed transcript.
#[derive(Debug, Clone)]
pub struct Finish {
    /// The last append and its claim. Its events end with exactly one `RUN_FINISHED` or `RUN_ERROR`.
    pub append: Append,
    /// What the record will say.
    pub verdict: EndVerdict,
    /// The cancel that the verdict takes into account. A finish is refused where another one is on the record.
    pub cancel: Option<CancelReason>,
    /// The agent's exit status, where it is known.
    pub exit_code: Option<i32>,
    /// What it used.
    pub usage: Vec<Usage>,
}

/// The answer to [`Finish`].
#[derive(Debug, Clone)]
pub struct Finished {
    /// The record as it is from now on.
    pub run: RunRecord,
}

/// What became of a wish to stop.
#[derive(Debug, Clone)]
pub enum CancelOutcome {
    /// It is on the record now.
    Recorded(Box<RunRecord>),
    /// It was on the record before.
    AlreadyRequested(Box<RunRecord>),
    /// The run had ended before.
    Terminal(Box<RunRecord>),
    /// The wish was for want of viewers (`disconnect`, `ttl`), and somebody watches. Nothing was written.
    Watched(Box<RunRecord>),
    /// No such run.
    NotFound,
}

/// Which runs to list: newest first, in pages.
#[derive(Debug, Clone, Default)]
pub struct ListRuns {
    /// Whose.
    pub tenant: Tenant,
    /// Only of this thread.
    pub thread_id: Option<ThreadId>,
    /// Only with one of these statuses; empty: all.
    pub statuses: Vec<Status>,
    /// Only runs that live and that nobody drives: the claim was given back, its lease has run out, or its owner is
    /// provably dead.
    pub undriven: bool,
    /// Only runs that live and that nobody watches.
    pub detached: bool,
    /// Only runs that come after this one (`started_at`, `run_id` of the last of the page before).
    pub after: Option<(u64, RunId)>,
    /// At most so many.
    pub limit: usize,
}

/// An event as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its number.
    pub seq: Seq,
    /// When it was stored, in milliseconds since 1970.
    pub at: u64,
    /// Where it came from.
    pub origin: Origin,
    /// Its JSON, byte for byte as it was appended; where its body was off-loaded, what stands for it.
    pub json: String,
    /// Where its body is, where that was off-loaded.
    pub pointer: Option<Pointer>,
}

/// What a log is beyond the events that a page holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEnd {
    /// More may come.
    Open,
    /// Nothing more will come.
    Closed,
    /// The events have aged out.
    Expired,
}

/// A piece of a log, from one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The events, in order.
    pub events: Vec<StoredEvent>,
    /// The state of the log at its tail.
    pub end: LogEnd,
    /// The number of the last event of the log, which may lie beyond this page.
    pub tail: Seq,
}

impl Page {
    /// Whether a reader that has this page has everything that there is, and ever will be.
    pub fn is_last(&self, after: Seq) -> bool {
        let reached = self.events.last().map_or(after, |event| event.seq);
        self.end != LogEnd::Open && reached >= self.tail
    }
}

/// Until when a viewer counts as present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PresenceUntil {
    /// So long from now.
    For(Duration),
    /// Not any more.
    Left,
}

/// The state of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstanceState {
    /// The intent is written; it may or may not exist.
    Creating,
    /// It exists and may be used.
    Live,
    /// It is being destroyed.
    Destroying,
    /// It is gone.
    Gone,
}

impl InstanceState {
    /// The stored form.
    pub fn as_str(self) -> &'static str {
        match self {
            InstanceState::Creating => "creating",
            InstanceState::Live => "live",
            InstanceState::Destroying => "destroying",
            InstanceState::Gone => "gone",
        }
    }

    /// Reads the stored form.
    pub fn parse(text: &str) -> Option<InstanceState> {
        [InstanceState::Creating, InstanceState::Live, InstanceState::Destroying, InstanceState::Gone]
            .into_iter()
            .find(|state| state.as_str() == text)
    }
}

/// A sandbox that was created, or is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Its id, never used again.
    pub instance_id: InstanceId,
    /// The key under which the thread finds it again.
    pub sandbox_key: String,
    /// Who made it.
    pub provider: String,
    /// The machine that it is bound to; none: any host reaches it.
    pub machine: Option<String>,
    /// Its state.
    pub state: InstanceState,
    /// When the intent was written, in milliseconds since 1970.
    pub created_at: u64,
    /// Whose it is.
    pub tenant: Tenant,
    /// The thread that it was made for; none where that was not recorded yet.
    pub thread_id: Option<ThreadId>,
    /// Whether its workspace is a directory that the user lent, which outlives it.
    pub lent: bool,
    /// How long it is kept once its last run has ended, in milliseconds; none: until somebody removes it.
    pub keep_alive: Option<u64>,
    /// Its end, once one is in sight.
    pub reclaim: Option<Reclaim>,
}

/// The end of a sandbox that is in sight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reclaim {
    /// When it is to be destroyed, or tried again to be, in milliseconds since 1970.
    pub at: u64,
    /// How many attempts have failed in a row.
    pub failed: u32,
    /// Why the last one has.
    pub error: Option<String>,
    /// Who destroys it at the moment.
    pub owner: Option<OwnerId>,
}

/// Which instances to list: the oldest first, in pages. Those that are gone are not listed.
#[derive(Debug, Clone, Default)]
pub struct ListInstances {
    /// Only those that this machine reaches.
    pub machine: Option<String>,
    /// Only those that are due to be destroyed and that nobody is destroying.
    pub due: bool,
    /// Only those that come after this one (`created_at`, `instance_id` of the last of the page before).
    pub after: Option<(u64, InstanceId)>,
    /// At most so many.
    pub limit: usize,
}

/// A wish to destroy an instance. See [`crate::Instances::begin_reclaim`].
#[derive(Debug, Clone)]
pub struct BeginReclaim {
    /// The instance.
    pub instance_id: InstanceId,
    /// Who would destroy it.
    pub owner: OwnerId,
    /// For how long nobody else may.
    pub lease: Duration,
    /// Whether a person wants it now, whatever its lifecycle says.
    pub forced: bool,
}

/// What became of the attempt to destroy an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReclaimEnd {
    /// The provider says that it is gone.
    Gone,
    /// It may still be there.
    Failed {
        /// Why.
        error: String,
    },
}

/// A process that works on this store's runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSeen {
    /// Who.
    pub owner: OwnerId,
    /// The machine whose sandboxes it reaches.
    pub machine: Option<String>,
    /// What it is: `serve`, or `reap` for a sweep that somebody else schedules; and its version, after a blank.
    pub version: String,
    /// When it announced itself first, in milliseconds since 1970.
    pub since: u64,
}

/// What a step of the retention has done, or would do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Runs whose last row went.
    pub runs: u64,
    /// Rows that went.
    pub rows: u64,
    /// Whether there is more to do.
    pub more: bool,
}

/// Numbers for people who watch over the store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// How many runs have each status.
    pub runs: BTreeMap<&'static str, u64>,
    /// Live runs that nobody watches.
    pub detached: u64,
    /// Live runs that nobody drives.
    pub undriven: u64,
    /// Live runs that have gone on without a viewer for longer than they may.
    pub overdue: u64,
    /// For how long nobody has watched the run for which that is longest, in milliseconds.
    pub oldest_detached: Option<u64>,
    /// How many instances that are not gone have each state.
    pub instances: BTreeMap<&'static str, u64>,
    /// Instances that are due to be destroyed.
    pub reclaims_pending: u64,
    /// Those of them of which an attempt has failed.
    pub reclaims_failed: u64,
    /// About how many bytes the store takes.
    pub bytes: u64,
}
