//! What outlives the delivery log.

use async_trait::async_trait;
use outlast_core::{RunId, Tenant, ThreadId};
use outlast_store::{Ledger, MessageRow, StoreError};

use super::handle::PostgresStore;
use crate::sql;

#[async_trait]
impl Ledger for PostgresStore {
    async fn thread_messages(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
    ) -> Result<Vec<MessageRow>, StoreError> {
        let client = self.shared.reader().await?;
        sql::thread_messages(&client, tenant, thread).await.map_err(|failure| failure.told())
    }

    async fn run_messages(&self, tenant: &Tenant, run_id: &RunId) -> Result<Vec<MessageRow>, StoreError> {
        let client = self.shared.reader().await?;
        sql::run_messages(&client, tenant, run_id).await.map_err(|failure| failure.told())
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
