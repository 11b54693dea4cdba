//! A host's way to ledgers.

use std::time::Duration;

use async_trait::async_trait;
use outlast_core::ledger::{Pointer, SessionId};
use outlast_core::{Nonce, OwnerId, RunId, Tenant, ThreadId};
use outlast_store::{
    AcquireLease, AppendRecords, DeleteError, LeaseError, LeaseGranted, LeaseToken, Ledger, ListSessions,
    MessagePage, MessageRow, Pin, ReadRecords, RecordAppended, RecordPage, RecordsError, SessionHead,
    SessionName, StoreError, Swept,
};

use super::store::{ALL, SimStore};

#[async_trait]
impl Ledger for SimStore {
    async fn session(&self, tenant: &Tenant, name: &SessionName) -> Result<Option<SessionHead>, StoreError> {
        self.way("session", name, true, self.inner.session(tenant, name)).await
    }

    async fn settle_session(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
    ) -> Result<Option<SessionHead>, StoreError> {
        self.way("settle", thread, false, self.inner.settle_session(tenant, thread)).await
    }

    async fn list_sessions(&self, query: &ListSessions) -> Result<Vec<SessionHead>, StoreError> {
        self.way("list-sessions", &ALL, true, self.inner.list_sessions(query)).await
    }

    async fn append_records(&self, append: AppendRecords) -> Result<Vec<RecordAppended>, RecordsError> {
        let thread = append.thread_id.clone();
        let work = async {
            let done = self.inner.append_records(append.clone()).await;
            self.watch(|watch| watch.recorded(&append, &done));
            done
        };
        self.way("append-records", &thread, false, work).await
    }

    async fn read_records(&self, query: &ReadRecords) -> Result<RecordPage, RecordsError> {
        self.way("read-records", &query.session_id, true, self.inner.read_records(query)).await
    }

    async fn thread_messages(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<MessagePage, StoreError> {
        self.way("thread", thread, true, self.inner.thread_messages(tenant, thread, before, limit)).await
    }

    async fn run_messages(&self, tenant: &Tenant, run_id: &RunId) -> Result<Vec<MessageRow>, StoreError> {
        self.way("messages", run_id, true, self.inner.run_messages(tenant, run_id)).await
    }

    async fn acquire_lease(&self, request: &AcquireLease) -> Result<LeaseGranted, LeaseError> {
        self.way("lease", &request.on.name(), false, self.inner.acquire_lease(request)).await
    }

    async fn renew_lease(&self, lease: &LeaseToken, lasts: Duration) -> Result<bool, StoreError> {
        self.way("renew-lease", &lease.on.name(), false, self.inner.renew_lease(lease, lasts)).await
    }

    async fn release_lease(&self, lease: &LeaseToken, note: Option<u64>) -> Result<(), StoreError> {
        self.way("release-lease", &lease.on.name(), false, self.inner.release_lease(lease, note)).await
    }

    async fn pointers(&self, session: &SessionId) -> Result<Vec<Pointer>, StoreError> {
        self.way("pointers", session, true, self.inner.pointers(session)).await
    }

    async fn condemn(&self, lease: &LeaseToken, keys: &[String]) -> Result<Vec<String>, RecordsError> {
        self.way("condemn", &lease.on.name(), false, self.inner.condemn(lease, keys)).await
    }

    async fn pin(&self, pin: &Nonce, owner: &OwnerId, lasts: Duration) -> Result<Option<u64>, StoreError> {
        self.way("pin", &ALL, true, self.inner.pin(pin, owner, lasts)).await
    }

    async fn unpin(&self, pin: &Nonce) -> Result<(), StoreError> {
        self.way("unpin", &ALL, true, self.inner.unpin(pin)).await
    }

    async fn pins(&self) -> Result<Vec<Pin>, StoreError> {
        self.way("pins", &ALL, true, self.inner.pins()).await
    }

    async fn begin_delete(
        &self,
        tenant: &Tenant,
        name: &SessionName,
        idle_for: Option<Duration>,
    ) -> Result<SessionHead, DeleteError> {
        let work = async {
            let done = self.inner.begin_delete(tenant, name, idle_for).await;
            self.watch(|watch| watch.deletion_begun(&done));
            done
        };
        self.way("begin-delete", name, false, work).await
    }

    async fn delete_rows(&self, session: &SessionId, max_rows: usize) -> Result<Swept, StoreError> {
        self.way("delete-rows", session, false, self.inner.delete_rows(session, max_rows)).await
    }

    async fn end_delete(&self, session: &SessionId) -> Result<(), StoreError> {
        let work = async {
            let done = self.inner.end_delete(session).await;
            self.watch(|watch| watch.deletion_ended(session));
            done
        };
        self.way("end-delete", session, false, work).await
    }

    async fn last_agent_session(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
        kind: &str,
        before: &RunId,
    ) -> Result<Option<String>, StoreError> {
        self.way("agent-session", thread, true, self.inner.last_agent_session(tenant, thread, kind, before))
            .await
    }
}
