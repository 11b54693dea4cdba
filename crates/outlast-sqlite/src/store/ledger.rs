//! What outlives the delivery log.

use std::time::Duration;

use async_trait::async_trait;
use outlast_core::ledger::{Pointer, SessionId};
use outlast_core::{Nonce, OwnerId, RunId, Tenant, ThreadId};
use outlast_store::{
    AcquireLease, AppendRecords, DeleteError, LeaseError, LeaseGranted, LeaseToken, Ledger, ListSessions,
    MessagePage, MessageRow, Pin, ReadRecords, RecordAppended, RecordPage, RecordsError, SessionHead,
    SessionName, StoreError, Swept,
};

use super::SqliteStore;
use crate::sql;
use crate::writer::Urgency::{Normal, Urgent};

#[async_trait]
impl Ledger for SqliteStore {
    async fn session(&self, tenant: &Tenant, name: &SessionName) -> Result<Option<SessionHead>, StoreError> {
        let (tenant, name) = (tenant.clone(), name.clone());
        self.view(move |view| sql::head(view, &tenant, &name)).await
    }

    async fn settle_session(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
    ) -> Result<Option<SessionHead>, StoreError> {
        let (tenant, thread) = (tenant.clone(), thread.clone());
        let (asked, of) = (tenant.clone(), thread.clone());
        // Nearly always there is nothing to give, and then nobody waits for the writer.
        if let Some(head) = self.view(move |view| sql::settled(view, &asked, &of)).await? {
            return Ok(head);
        }
        self.write(Normal, move |tx| sql::settle_session(tx, &tenant, &thread).map(Ok)).await
    }

    async fn list_sessions(&self, query: &ListSessions) -> Result<Vec<SessionHead>, StoreError> {
        let query = query.clone();
        self.view(move |view| sql::list_sessions(view, &query)).await
    }

    async fn append_records(&self, append: AppendRecords) -> Result<Vec<RecordAppended>, RecordsError> {
        self.write(Normal, move |tx| sql::append_records(tx, &append)).await
    }

    async fn read_records(&self, query: &ReadRecords) -> Result<RecordPage, RecordsError> {
        let query = query.clone();
        self.view(move |view| sql::read_records(view, &query)).await?
    }

    async fn thread_messages(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<MessagePage, StoreError> {
        let (tenant, thread) = (tenant.clone(), thread.clone());
        self.view(move |view| sql::thread_messages(view, &tenant, &thread, before, limit)).await
    }

    async fn run_messages(&self, tenant: &Tenant, run_id: &RunId) -> Result<Vec<MessageRow>, StoreError> {
        let (tenant, run_id) = (tenant.clone(), run_id.clone());
        self.view(move |view| sql::run_messages(view, &tenant, &run_id)).await
    }

    async fn acquire_lease(&self, request: &AcquireLease) -> Result<LeaseGranted, LeaseError> {
        let request = request.clone();
        self.write(Urgent, move |tx| sql::acquire_lease(tx, &request)).await
    }

    async fn renew_lease(&self, lease: &LeaseToken, lasts: Duration) -> Result<bool, StoreError> {
        let lease = lease.clone();
        self.write(Urgent, move |tx| sql::renew_lease(tx, &lease, lasts).map(Ok)).await
    }

    async fn release_lease(&self, lease: &LeaseToken, note: Option<u64>) -> Result<(), StoreError> {
        let lease = lease.clone();
        self.write(Urgent, move |tx| sql::release_lease(tx, &lease, note).map(Ok)).await
    }

    async fn pointers(&self, session: &SessionId) -> Result<Vec<Pointer>, StoreError> {
        let session = session.clone();
        self.view(move |view| sql::pointers(view, &session)).await
    }

    async fn condemn(&self, lease: &LeaseToken, keys: &[String]) -> Result<Vec<String>, RecordsError> {
        let (lease, keys) = (lease.clone(), keys.to_vec());
        self.write(Normal, move |tx| sql::condemn(tx, &lease, &keys)).await
    }

    async fn pin(&self, pin: &Nonce, owner: &OwnerId, lasts: Duration) -> Result<Option<u64>, StoreError> {
        let (pin, owner) = (pin.clone(), owner.clone());
        self.write(Urgent, move |tx| sql::pin(tx, &pin, &owner, lasts).map(Ok)).await
    }

    async fn unpin(&self, pin: &Nonce) -> Result<(), StoreError> {
        let pin = pin.clone();
        self.write(Normal, move |tx| sql::unpin(tx, &pin).map(Ok)).await
    }

    async fn pins(&self) -> Result<Vec<Pin>, StoreError> {
        self.view(sql::pins).await
    }

    async fn begin_delete(
        &self,
        tenant: &Tenant,
        name: &SessionName,
        idle_for: Option<Duration>,
    ) -> Result<SessionHead, DeleteError> {
        let (tenant, name) = (tenant.clone(), name.clone());
        self.write(Normal, move |tx| sql::begin_delete(tx, &tenant, &name, idle_for)).await
    }

    async fn delete_rows(&self, session: &SessionId, max_rows: usize) -> Result<Swept, StoreError> {
        let session = session.clone();
        self.write(Normal, move |tx| sql::delete_rows(tx, &session, max_rows).map(Ok)).await
    }

    async fn end_delete(&self, session: &SessionId) -> Result<(), StoreError> {
        let session = session.clone();
        self.write(Normal, move |tx| sql::end_delete(tx, &session).map(Ok)).await
    }

    async fn last_agent_session(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
        kind: &str,
        before: &RunId,
    ) -> Result<Option<String>, StoreError> {
        let (tenant, thread, before) = (tenant.clone(), thread.clone(), before.clone());
        let kind = kind.to_owned();
        self.view(move |view| sql::last_agent_session(view, &tenant, &thread, &kind, &before)).await
    }
}
