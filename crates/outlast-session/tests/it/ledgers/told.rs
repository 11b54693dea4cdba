//! A store that tells what is done to it, and fails when it is told to.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::ledger::{Pointer, SessionId};
use outlast_core::run::{CancelReason, ClaimToken, RunRecord};
use outlast_core::{InstanceId, Nonce, OwnerId, RunId, Seq, Tenant, ThreadId};
use outlast_store::*;

use super::trouble::Trouble;

#[derive(Debug)]
pub struct Told {
    pub inner: MemoryStore,
    pub trouble: Arc<Trouble>,
}

impl Told {
    fn ask(&self, what: &str) -> Result<(), StoreError> {
        match self.trouble.goes(what) {
            true => Ok(()),
            false => Err(StoreError::Unavailable { message: format!("{what} fails") }),
        }
    }
}

/// Passes each operation on, once it was told.
macro_rules! pass_on {
    ($trait:ident { $($name:ident($($arg:ident: $of:ty),*) -> $ok:ty, $error:ty;)* } $($rest:tt)*) => {
        #[async_trait]
        impl $trait for Told {
            $(async fn $name(&self, $($arg: $of),*) -> Result<$ok, $error> {
                self.ask(stringify!($name))?;
                $trait::$name(&self.inner, $($arg),*).await
            })*
            $($rest)*
        }
    };
}

pass_on! {
    Runs {
        accept(request: Accept) -> Accepted, AcceptError;
        run(tenant: &Tenant, run_id: &RunId) -> Option<RunRecord>, StoreError;
        list_runs(query: &ListRuns) -> Vec<RunRecord>, StoreError;
        find_active_run(tenant: &Tenant, thread: &ThreadId) -> Option<RunRecord>, StoreError;
        claim(request: Claim) -> Claimed, ClaimError;
        renew(owner: &OwnerId, claims: &[(RunId, u64)], lease: Duration) -> Vec<Renewed>, StoreError;
        release(token: &ClaimToken) -> (), StoreError;
        request_cancel(tenant: &Tenant, run_id: &RunId, reason: CancelReason, detached_for: Option<Duration>) -> CancelOutcome, StoreError;
        note_stall(token: &ClaimToken) -> u32, WriteError;
        announce(host: &HostSeen, lasts: Duration) -> (), StoreError;
        hosts() -> Vec<HostSeen>, StoreError;
        presence(run_id: &RunId, host: &OwnerId, until: PresenceUntil) -> (), StoreError;
    }
}

pass_on! {
    Log {
        launched(token: &ClaimToken, expected_tail: Seq, events: Vec<NewEvent>) -> Appended, AppendError;
        append(append: Append) -> Appended, AppendError;
        finish(finish: Finish) -> Finished, FinishError;
        read(tenant: &Tenant, run_id: &RunId, after: Seq, max_events: usize, max_bytes: usize) -> Page, ReadError;
        expire_events(ended_for: Duration, max_rows: usize) -> Swept, StoreError;
        count_expired(ended_for: Duration) -> Swept, StoreError;
    }

    fn subscribe(&self, run_id: &RunId) -> Signal {
        self.inner.subscribe(run_id)
    }
}

pass_on! {
    Instances {
        create_instance(token: &ClaimToken, instance: &Instance) -> (), InstanceError;
        use_instance(token: &ClaimToken, instance: &InstanceId) -> (), InstanceError;
        instance_created(instance: &InstanceId) -> (), InstanceError;
        begin_reclaim(request: &BeginReclaim) -> Instance, ReclaimError;
        end_reclaim(instance: &InstanceId, owner: &OwnerId, end: &ReclaimEnd) -> (), StoreError;
        list_instances(query: &ListInstances) -> Vec<Instance>, StoreError;
        instance(instance: &InstanceId) -> Option<Instance>, StoreError;
        find_instance(sandbox_key: &str, machine: Option<&str>) -> Option<Instance>, StoreError;
    }
}

pass_on! {
    Ledger {
        session(tenant: &Tenant, name: &SessionName) -> Option<SessionHead>, StoreError;
        settle_session(tenant: &Tenant, thread: &ThreadId) -> Option<SessionHead>, StoreError;
        list_sessions(query: &ListSessions) -> Vec<SessionHead>, StoreError;
        thread_messages(tenant: &Tenant, thread: &ThreadId, before: Option<u64>, limit: usize) -> MessagePage, StoreError;
        run_messages(tenant: &Tenant, run_id: &RunId) -> Vec<MessageRow>, StoreError;
        acquire_lease(request: &AcquireLease) -> LeaseGranted, LeaseError;
        renew_lease(lease: &LeaseToken, lasts: Duration) -> bool, StoreError;
        release_lease(lease: &LeaseToken, note: Option<u64>) -> (), StoreError;
        pointers(session: &SessionId) -> Vec<Pointer>, StoreError;
        condemn(lease: &LeaseToken, keys: &[String]) -> Vec<String>, RecordsError;
        pin(pin: &Nonce, owner: &OwnerId, lasts: Duration) -> Option<u64>, StoreError;
        unpin(pin: &Nonce) -> (), StoreError;
        pins() -> Vec<Pin>, StoreError;
        begin_delete(tenant: &Tenant, name: &SessionName, idle_for: Option<Duration>) -> SessionHead, DeleteError;
        delete_rows(session: &SessionId, max_rows: usize) -> Swept, StoreError;
        end_delete(session: &SessionId) -> (), StoreError;
        last_agent_session(tenant: &Tenant, thread: &ThreadId, kind: &str, before: &RunId) -> Option<String>, StoreError;
    }

    async fn append_records(&self, append: AppendRecords) -> Result<Vec<RecordAppended>, RecordsError> {
        let kinds: Vec<_> = append.records.iter().map(|new| new.record.kind().as_str()).collect();
        self.ask(&format!("append_records {}", kinds.join(" ")))?;
        self.inner.append_records(append).await
    }

    async fn read_records(&self, query: &ReadRecords) -> Result<RecordPage, RecordsError> {
        self.ask("read_records")?;
        let mut page = self.inner.read_records(query).await?;
        page.records.iter_mut().for_each(|record| self.trouble.alter(record));
        Ok(page)
    }
}

#[async_trait]
impl Store for Told {
    async fn deployment_id(&self) -> Result<String, StoreError> {
        self.inner.deployment_id().await
    }

    async fn now(&self) -> Result<u64, StoreError> {
        self.ask("now")?;
        Store::now(&self.inner).await
    }

    async fn stats(&self) -> Result<StoreStats, StoreError> {
        self.inner.stats().await
    }

    async fn close(&self) {}
}
