//! What outlives the delivery log.

use async_trait::async_trait;
use outlast_core::{RunId, Tenant, ThreadId};
use outlast_store::{Ledger, MessageRow, StoreError};

use super::SqliteStore;
use crate::sql;

#[async_trait]
impl Ledger for SqliteStore {
    async fn thread_messages(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
    ) -> Result<Vec<MessageRow>, StoreError> {
        let (tenant, thread) = (tenant.clone(), thread.clone());
        self.view(move |view| sql::thread_messages(view, &tenant, &thread)).await
    }

    async fn run_messages(&self, tenant: &Tenant, run_id: &RunId) -> Result<Vec<MessageRow>, StoreError> {
        let (tenant, run_id) = (tenant.clone(), run_id.clone());
        self.view(move |view| sql::run_messages(view, &tenant, &run_id)).await
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
