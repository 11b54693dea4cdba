//! The delivery log.

use std::time::Duration;

use async_trait::async_trait;
use outlast_core::run::ClaimToken;
use outlast_core::{RunId, Seq, Tenant};
use outlast_store::{
    Append, AppendError, Appended, Finish, FinishError, Finished, Log, NewEvent, Page, ReadError, Signal,
    StoreError, Swept,
};

use super::handle::{PostgresStore, write};
use crate::sql;

#[async_trait]
impl Log for PostgresStore {
    async fn launched(
        &self,
        token: &ClaimToken,
        expected_tail: Seq,
        events: Vec<NewEvent>,
    ) -> Result<Appended, AppendError> {
        write!(self.shared, |tx| sql::launched(&tx, token, expected_tail, &events))
    }

    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        sql::refuse_terminal(append.events.iter().map(|event| event.chunk.kind))?;
        if !sql::points_elsewhere(&append) {
            let client = self.shared.client().await?;
            let appended = sql::append_at_once(&client, &append).await.map_err(|failure| failure.told())?;
            drop(client);
            if let Some(appended) = appended {
                self.shared.touched(std::slice::from_ref(&append.token.run_id));
                return Ok(appended);
            }
        }
        write!(self.shared, |tx| sql::append(&tx, &append))
    }

    async fn finish(&self, finish: Finish) -> Result<Finished, FinishError> {
        write!(self.shared, |tx| sql::finish(&tx, &finish))
    }

    async fn read(
        &self,
        tenant: &Tenant,
        run_id: &RunId,
        after: Seq,
        max_events: usize,
        max_bytes: usize,
    ) -> Result<Page, ReadError> {
        let client = self.shared.reader().await?;
        sql::page(&client, tenant, run_id, after, max_events, max_bytes)
            .await
            .map_err(|failure| failure.told())?
    }

    async fn expire_events(&self, ended_for: Duration, max_rows: usize) -> Result<Swept, StoreError> {
        write!(self.shared, |tx| async { sql::expire_events(&tx, ended_for, max_rows).await.map(Ok) })
    }

    async fn count_expired(&self, ended_for: Duration) -> Result<Swept, StoreError> {
        let client = self.shared.reader().await?;
        sql::count_expired(&client, ended_for).await.map_err(|failure| failure.told())
    }

    fn subscribe(&self, run_id: &RunId) -> Signal {
        self.shared.signals.subscribe(run_id)
    }
}
