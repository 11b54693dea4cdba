//! The delivery log.

use async_trait::async_trait;
use outlast_core::run::ClaimToken;
use outlast_core::{RunId, Seq, Tenant};
use outlast_store::{
    Append, AppendError, Appended, Finish, FinishError, Finished, Log, NewEvent, Page, ReadError, Signal,
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
        let client = self.shared.client().await?;
        let appended = sql::append_at_once(&client, &append).await.map_err(|failure| failure.told())?;
        drop(client);
        if let Some(appended) = appended {
            self.shared.touched(std::slice::from_ref(&append.token.run_id));
            return Ok(appended);
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

    fn subscribe(&self, run_id: &RunId) -> Signal {
        self.shared.signals.subscribe(run_id)
    }
}
