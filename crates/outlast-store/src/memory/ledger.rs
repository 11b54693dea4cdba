//! What outlives the delivery log.

use async_trait::async_trait;
use outlast_core::{RunId, Tenant, ThreadId};

use super::MemoryStore;
use super::state::Run;
use crate::{Ledger, MessageRow, StoreError};

#[async_trait]
impl Ledger for MemoryStore {
    async fn thread_messages(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
    ) -> Result<Vec<MessageRow>, StoreError> {
        let state = self.lock();
        let runs =
            state.runs.iter().filter(|run| run.record.tenant == *tenant && run.record.thread_id == *thread);
        Ok(runs.flat_map(messages).collect())
    }

    async fn run_messages(&self, tenant: &Tenant, run_id: &RunId) -> Result<Vec<MessageRow>, StoreError> {
        Ok(self.lock().find(tenant, run_id).map(|run| messages(run).collect()).unwrap_or_default())
    }

    async fn last_agent_session(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
        kind: &str,
        before: &RunId,
    ) -> Result<Option<String>, StoreError> {
        let state = self.lock();
        let before = state.by_id.get(before).copied().unwrap_or(0);
        Ok(state.runs[..before]
            .iter()
            .rev()
            .filter(|run| run.record.tenant == *tenant && run.record.thread_id == *thread)
            .filter(|run| run.record.spec.kind == kind)
            .find_map(|run| run.record.agent_session.clone()))
    }
}

fn messages(run: &Run) -> impl Iterator<Item = MessageRow> {
    run.messages.iter().map(|(ordinal, message)| MessageRow {
        run_id: run.record.run_id.clone(),
        ordinal: *ordinal,
        message: message.clone(),
    })
}
