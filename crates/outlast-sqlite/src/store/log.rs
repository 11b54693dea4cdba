//! The delivery log.

use std::time::Duration;

use async_trait::async_trait;
use outlast_core::run::ClaimToken;
use outlast_core::{RunId, Seq, Tenant};
use outlast_store::{
    Append, AppendError, Appended, Finish, FinishError, Finished, Log, NewEvent, Page, ReadError, Signal,
    StoreError, Swept,
};

use super::SqliteStore;
use crate::sql;
use crate::writer::Urgency::{Normal, Urgent};

#[async_trait]
impl Log for SqliteStore {
    async fn launched(
        &self,
        token: &ClaimToken,
        expected_tail: Seq,
        events: Vec<NewEvent>,
    ) -> Result<Appended, AppendError> {
        let token = token.clone();
        self.write(Urgent, move |tx| sql::launched(tx, &token, expected_tail, &events)).await
    }

    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        self.write(Normal, move |tx| sql::append(tx, &append)).await
    }

    async fn finish(&self, finish: Finish) -> Result<Finished, FinishError> {
        self.write(Urgent, move |tx| sql::finish(tx, &finish)).await
    }

    async fn read(
        &self,
        tenant: &Tenant,
        run_id: &RunId,
        after: Seq,
        max_events: usize,
        max_bytes: usize,
    ) -> Result<Page, ReadError> {
        let (tenant, run_id) = (tenant.clone(), run_id.clone());
        self.view(move |view| sql::page(view, &tenant, &run_id, after, max_events, max_bytes)).await?
    }

    async fn expire_events(&self, ended_for: Duration, max_rows: usize) -> Result<Swept, StoreError> {
        self.write(Normal, move |tx| sql::expire_events(tx, ended_for, max_rows).map(Ok)).await
    }

    async fn count_expired(&self, ended_for: Duration) -> Result<Swept, StoreError> {
        self.view(move |view| sql::count_expired(view, ended_for)).await
    }

    fn subscribe(&self, run_id: &RunId) -> Signal {
        self.shared.signals.subscribe(run_id)
    }
}
