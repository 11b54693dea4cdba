//! The roles of a store.

use std::time::Duration;

use async_trait::async_trait;
use outlast_core::run::{CancelReason, ClaimToken, RunRecord};
use outlast_core::{InstanceId, OwnerId, RunId, Seq, Tenant, ThreadId};

use crate::{
    Accept, AcceptError, Accepted, AcquireLease, Append, AppendError, AppendRecords, Appended, BeginReclaim,
    CancelOutcome, Claim, ClaimError, Claimed, DeleteError, Finish, FinishError, Finished, HostSeen,
    Instance, InstanceError, LeaseError, LeaseGranted, LeaseToken, ListInstances, ListRuns, ListSessions,
    MessagePage, MessageRow, NewEvent, Page, Pin, PresenceUntil, ReadError, ReadRecords, ReclaimEnd,
    ReclaimError, RecordAppended, RecordPage, RecordsError, Renewed, SessionHead, SessionName, Signal,
    StoreError, StoreStats, Swept, WriteError,
};
use outlast_core::Nonce;
use outlast_core::ledger::{Pointer, SessionId};

/// Run records, claims, cancels and presence.
#[async_trait]
pub trait Runs: Send + Sync {
    /// Records a run, its claim at epoch 1, the first events and the turn's messages in one transaction, or answers
    /// with the run that the same request made before. Decided by [`outlast_core::decide::accept`]. Of any number of
    /// callers at once, with one run id, on one thread or in one unshared workspace, one gets a new run.
    async fn accept(&self, request: Accept) -> Result<Accepted, AcceptError>;

    /// The run, or none.
    async fn run(&self, tenant: &Tenant, run_id: &RunId) -> Result<Option<RunRecord>, StoreError>;

    /// A page of runs, newest first.
    async fn list_runs(&self, query: &ListRuns) -> Result<Vec<RunRecord>, StoreError>;

    /// The running run of the thread, or none. An interrupted one is not running.
    async fn find_active_run(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
    ) -> Result<Option<RunRecord>, StoreError>;

    /// Grants the claim: epoch + 1 and a lease of the wanted length, in one conditional write decided by
    /// [`outlast_core::decide::claim`]. A refusal writes nothing.
    async fn claim(&self, request: Claim) -> Result<Claimed, ClaimError>;

    /// Lengthens the leases of these claims (run and epoch) to this length from now, where the owner still holds them,
    /// and tells which these are. A claim that is missing from the answer is lost, or its run has ended. A claim that the
    /// owner does not name runs out: nobody may be left who knows of it.
    async fn renew(
        &self,
        owner: &OwnerId,
        claims: &[(RunId, u64)],
        lease: Duration,
    ) -> Result<Vec<Renewed>, StoreError>;

    /// Gives the claim back: the next claim is granted at once. Without effect where it is not current.
    async fn release(&self, token: &ClaimToken) -> Result<(), StoreError>;

    /// Records that somebody wants the run to stop, as decided by [`outlast_core::decide::cancel`]; with `detached_for`
    /// only where nobody has watched it for at least so long. The first wish stays; nothing withdraws it.
    async fn request_cancel(
        &self,
        tenant: &Tenant,
        run_id: &RunId,
        reason: CancelReason,
        detached_for: Option<Duration>,
    ) -> Result<CancelOutcome, StoreError>;

    /// Notes that the run made no progress although its agent has ended, gives the claim back, and answers how often
    /// that has happened in a row with the log where it is. Fenced.
    async fn note_stall(&self, token: &ClaimToken) -> Result<u32, WriteError>;

    /// Says that this process works here, for so long from now. Renewed by the process; runs out by itself.
    async fn announce(&self, host: &HostSeen, lasts: Duration) -> Result<(), StoreError>;

    /// The processes that have announced themselves and whose time has not run out.
    async fn hosts(&self) -> Result<Vec<HostSeen>, StoreError>;

    /// Says that this host watches the run. Renewed by the host; runs out by itself.
    async fn presence(&self, run_id: &RunId, host: &OwnerId, until: PresenceUntil) -> Result<(), StoreError>;
}

/// The delivery log.
#[async_trait]
pub trait Log: Send + Sync {
    /// Records that the latch is known to be taken, with the events that say so. Fenced. Repeating it is harmless:
    /// where the run is `launched` already, nothing is written and the tail is answered.
    async fn launched(
        &self,
        token: &ClaimToken,
        expected_tail: Seq,
        events: Vec<NewEvent>,
    ) -> Result<Appended, AppendError>;

    /// Adds events, durable before it returns, if the token and the tail are current. An append whose batch was the
    /// last to be committed is answered as it was then.
    async fn append(&self, append: Append) -> Result<Appended, AppendError>;

    /// Ends the run in one transaction. A terminal status is never overwritten.
    async fn finish(&self, finish: Finish) -> Result<Finished, FinishError>;

    /// Events strictly after `after`, and the log's state, from one snapshot: at most `max_events`, and no further
    /// event once `max_bytes` are reached (a single larger event is still delivered).
    async fn read(
        &self,
        tenant: &Tenant,
        run_id: &RunId,
        after: Seq,
        max_events: usize,
        max_bytes: usize,
    ) -> Result<Page, ReadError>;

    /// Deletes events of runs that ended at least so long ago, at most so many rows, behind whatever else is to be
    /// written. A run's log is [`crate::LogEnd::Expired`] as a whole from its first row on.
    async fn expire_events(&self, ended_for: Duration, max_rows: usize) -> Result<Swept, StoreError>;

    /// What [`Log::expire_events`] would delete with this time, in the end.
    async fn count_expired(&self, ended_for: Duration) -> Result<Swept, StoreError>;

    /// A hint that something of this run may have changed. Whoever relies on it also looks again by itself, at most
    /// two seconds later.
    fn subscribe(&self, run_id: &RunId) -> Signal;
}

/// Sandboxes that were created, or are to be.
#[async_trait]
pub trait Instances: Send + Sync {
    /// Writes the intent to create an instance, and binds the claimed run to it (phase `launching`). Fenced.
    async fn create_instance(&self, token: &ClaimToken, instance: &Instance) -> Result<(), InstanceError>;

    /// Binds the claimed run to a live instance (phase `launching`). Fenced; refused where the instance is being
    /// destroyed.
    async fn use_instance(&self, token: &ClaimToken, instance: &InstanceId) -> Result<(), InstanceError>;

    /// Says that the instance exists from now on. Refused where it is being destroyed.
    async fn instance_created(&self, instance: &InstanceId) -> Result<(), InstanceError>;

    /// Begins to destroy an instance, as decided by [`outlast_core::decide::reclaim`]: from then on no run is bound to it
    /// and no thread finds it. The end of a run writes when its instance is due
    /// ([`outlast_core::decide::reclaim_after`]); whoever binds a run to it takes that back.
    async fn begin_reclaim(&self, request: &BeginReclaim) -> Result<Instance, ReclaimError>;

    /// Says what became of it. A failed attempt is due again after [`outlast_core::decide::reclaim_retry`]. Without effect
    /// where somebody else has begun since, unless it is gone.
    async fn end_reclaim(
        &self,
        instance: &InstanceId,
        owner: &OwnerId,
        end: &ReclaimEnd,
    ) -> Result<(), StoreError>;

    /// A page of instances that are not gone.
    async fn list_instances(&self, query: &ListInstances) -> Result<Vec<Instance>, StoreError>;

    /// The instance, or none.
    async fn instance(&self, instance: &InstanceId) -> Result<Option<Instance>, StoreError>;

    /// The live (or still creating) instance of a sandbox key on a machine, newest first.
    async fn find_instance(
        &self,
        sandbox_key: &str,
        machine: Option<&str>,
    ) -> Result<Option<Instance>, StoreError>;
}

/// What outlives the delivery log: the sessions of threads, and the leases and pins of their upkeep.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// The session, or none: of a thread that has never had a run, or whose runs are all of an older version.
    async fn session(&self, tenant: &Tenant, name: &SessionName) -> Result<Option<SessionHead>, StoreError>;

    /// As [`Ledger::session`], after the ledger was given what an older version has left elsewhere. None: the thread has
    /// never had a run.
    async fn settle_session(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
    ) -> Result<Option<SessionHead>, StoreError>;

    /// Sessions.
    async fn list_sessions(&self, query: &ListSessions) -> Result<Vec<SessionHead>, StoreError>;

    /// Adds records, durable before it returns, as decided by [`outlast_core::decide::RecordsFacts::append`]. The same
    /// records again add nothing and are answered with their numbers, so an unknown outcome is settled by repeating it.
    /// Runs add theirs themselves: [`Runs::accept`] the start, [`Log::finish`] messages and end, each in its own
    /// transaction, whatever the tip is.
    async fn append_records(&self, append: AppendRecords) -> Result<Vec<RecordAppended>, RecordsError>;

    /// Records of a ledger.
    async fn read_records(&self, query: &ReadRecords) -> Result<RecordPage, RecordsError>;

    /// The thread's latest messages that come before `before` ([`MessagePage::before`]; none: the latest of all, those of a
    /// live run included), at most `limit`; more only of one run's that have no numbers yet.
    async fn thread_messages(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<MessagePage, StoreError>;

    /// The run's messages by ordinal.
    async fn run_messages(&self, tenant: &Tenant, run_id: &RunId) -> Result<Vec<MessageRow>, StoreError>;

    /// Grants a lease, unless somebody else holds it.
    async fn acquire_lease(&self, request: &AcquireLease) -> Result<LeaseGranted, LeaseError>;

    /// Lengthens a lease to this length from now; false: it is lost.
    async fn renew_lease(&self, lease: &LeaseToken, lasts: Duration) -> Result<bool, StoreError>;

    /// Gives a lease back, with a note for the next holder. Without effect where it is lost.
    async fn release_lease(&self, lease: &LeaseToken, note: Option<u64>) -> Result<(), StoreError>;

    /// Every body of the session that a record, a message or an event points to.
    async fn pointers(&self, session: &SessionId) -> Result<Vec<Pointer>, StoreError>;

    /// Condemns those of these bodies to which nothing points, and answers with all that are condemned now. From then on
    /// nothing ever points to them. Only while the lease is held.
    async fn condemn(&self, lease: &LeaseToken, keys: &[String]) -> Result<Vec<String>, RecordsError>;

    /// Pins snapshots for so long from now, or for longer; answers since when. None: the pin had run out, and a collection
    /// may have taken what the snapshot relies on.
    async fn pin(&self, pin: &Nonce, owner: &OwnerId, lasts: Duration) -> Result<Option<u64>, StoreError>;

    /// Lets go of a pin.
    async fn unpin(&self, pin: &Nonce) -> Result<(), StoreError>;

    /// The pins that hold.
    async fn pins(&self) -> Result<Vec<Pin>, StoreError>;

    /// Begins to delete a session: from then on nothing is added to it, and its thread has no new run. With `idle_for` only
    /// where nothing has happened for so long. Repeating it is harmless.
    async fn begin_delete(
        &self,
        tenant: &Tenant,
        name: &SessionName,
        idle_for: Option<Duration>,
    ) -> Result<SessionHead, DeleteError>;

    /// Deletes rows of a session that is being deleted: its runs with all that belongs to them, then its records; at most
    /// about so many.
    async fn delete_rows(&self, session: &SessionId, max_rows: usize) -> Result<Swept, StoreError>;

    /// Ends the deletion, once there is nothing left of it anywhere. What remains says that there was a session.
    async fn end_delete(&self, session: &SessionId) -> Result<(), StoreError>;

    /// The latest session that an agent of this kind has had on the thread, before the given run.
    async fn last_agent_session(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
        kind: &str,
        before: &RunId,
    ) -> Result<Option<String>, StoreError>;
}

/// Everything durable.
#[async_trait]
pub trait Store: Runs + Log + Instances + Ledger + std::fmt::Debug {
    /// The deployment's id, a UUID made with the store; it labels everything that is created outside.
    async fn deployment_id(&self) -> Result<String, StoreError>;

    /// The store's clock, in milliseconds since 1970: the one that all its times are of.
    async fn now(&self) -> Result<u64, StoreError>;

    /// Numbers for people who watch over the store.
    async fn stats(&self) -> Result<StoreStats, StoreError>;

    /// Waits for everything in flight and lets go of what the process holds: its leases count as released.
    async fn close(&self);
}
