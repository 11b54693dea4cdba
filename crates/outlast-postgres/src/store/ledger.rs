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

use super::handle::{PostgresStore, write};
use crate::sql::{self, Found};

impl PostgresStore {
    async fn settle(&self, tenant: &Tenant, thread: &ThreadId) -> Result<Option<SessionHead>, StoreError> {
        write!(self.shared, |tx| async { sql::settle_session(&tx, tenant, thread).await.map(Ok) })
    }
}

#[async_trait]
impl Ledger for PostgresStore {
    async fn session(&self, tenant: &Tenant, name: &SessionName) -> Result<Option<SessionHead>, StoreError> {
        let client = self.shared.reader().await?;
        sql::session(&client, tenant, name).await.map_err(|failure| failure.told())
    }

    async fn settle_session(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
    ) -> Result<Option<SessionHead>, StoreError> {
        let client = self.shared.reader().await?;
        let found = sql::look(&client, tenant, thread).await.map_err(|failure| failure.told())?;
        drop(client);
        match found {
            Found::Settled(session) => Ok(Some(*session)),
            Found::Nothing => Ok(None),
            Found::Unsettled => self.settle(tenant, thread).await,
        }
    }

    async fn list_sessions(&self, query: &ListSessions) -> Result<Vec<SessionHead>, StoreError> {
        let client = self.shared.reader().await?;
        sql::list_sessions(&client, query).await.map_err(|failure| failure.told())
    }

    async fn append_records(&self, append: AppendRecords) -> Result<Vec<RecordAppended>, RecordsError> {
        let mut settled = false;
        loop {
            let appended: Result<Option<_>, RecordsError> =
                write!(self.shared, |tx| sql::append_records(&tx, &append, settled));
            match appended? {
                Some(appended) => return Ok(appended),
                None => self.settle(&append.tenant, &append.thread_id).await?,
            };
            settled = true;
        }
    }

    async fn read_records(&self, query: &ReadRecords) -> Result<RecordPage, RecordsError> {
        let client = self.shared.reader().await?;
        sql::read_records(&client, query).await.map_err(|failure| failure.told())?
    }

    async fn thread_messages(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<MessagePage, StoreError> {
        let client = self.shared.reader().await?;
        sql::thread_messages(&client, tenant, thread, before, limit).await.map_err(|failure| failure.told())
    }

    async fn run_messages(&self, tenant: &Tenant, run_id: &RunId) -> Result<Vec<MessageRow>, StoreError> {
        let client = self.shared.reader().await?;
        sql::run_messages(&client, tenant, run_id).await.map_err(|failure| failure.told())
    }

    async fn acquire_lease(&self, request: &AcquireLease) -> Result<LeaseGranted, LeaseError> {
        write!(self.shared, |tx| sql::acquire_lease(&tx, request))
    }

    async fn renew_lease(&self, lease: &LeaseToken, lasts: Duration) -> Result<bool, StoreError> {
        write!(self.shared, |tx| async { sql::renew_lease(&tx, lease, lasts).await.map(Ok) })
    }

    async fn release_lease(&self, lease: &LeaseToken, note: Option<u64>) -> Result<(), StoreError> {
        write!(self.shared, |tx| async { sql::release_lease(&tx, lease, note).await.map(Ok) })
    }

    async fn pointers(&self, session: &SessionId) -> Result<Vec<Pointer>, StoreError> {
        let client = self.shared.reader().await?;
        sql::pointers(&client, session).await.map_err(|failure| failure.told())
    }

    async fn condemn(&self, lease: &LeaseToken, keys: &[String]) -> Result<Vec<String>, RecordsError> {
        write!(self.shared, |tx| sql::condemn(&tx, lease, keys))
    }

    async fn pin(&self, pin: &Nonce, owner: &OwnerId, lasts: Duration) -> Result<Option<u64>, StoreError> {
        write!(self.shared, |tx| async { sql::pin(&tx, pin, owner, lasts).await.map(Ok) })
    }

    async fn unpin(&self, pin: &Nonce) -> Result<(), StoreError> {
        write!(self.shared, |tx| async { sql::unpin(&tx, pin).await.map(Ok) })
    }

    async fn pins(&self) -> Result<Vec<Pin>, StoreError> {
        write!(self.shared, |tx| async { sql::pins(&tx).await.map(Ok) })
    }

    async fn begin_delete(
        &self,
        tenant: &Tenant,
        name: &SessionName,
        idle_for: Option<Duration>,
    ) -> Result<SessionHead, DeleteError> {
        write!(self.shared, |tx| sql::begin_delete(&tx, tenant, name, idle_for))
    }

    async fn delete_rows(&self, session: &SessionId, max_rows: usize) -> Result<Swept, StoreError> {
        write!(self.shared, |tx| async { sql::delete_rows(&tx, session, max_rows).await.map(Ok) })
    }

    async fn end_delete(&self, session: &SessionId) -> Result<(), StoreError> {
        write!(self.shared, |tx| async { sql::end_delete(&tx, session).await.map(Ok) })
    }

    async fn last_agent_session(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
        kind: &str,
        before: &RunId,
    ) -> Result<Option<String>, StoreError> {
        let client = self.shared.reader().await?;
        sql::last_agent_session(&client, tenant, thread, kind, before).await.map_err(|failure| failure.told())
    }
}
