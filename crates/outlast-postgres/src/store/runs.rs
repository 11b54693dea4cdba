//! Run records, claims, cancels and presence.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::run::{CancelReason, ClaimToken, RunRecord};
use outlast_core::{OwnerId, RunId, Tenant, ThreadId};
use outlast_store::{
    Accept, AcceptError, Accepted, CancelOutcome, Claim, ClaimError, Claimed, HostSeen, ListRuns,
    PresenceUntil, Renewed, Runs, StoreError, WriteError,
};

use super::handle::{PostgresStore, grant, release, write};
use crate::failure::Failure;
use crate::sql;

#[async_trait]
impl Runs for PostgresStore {
    async fn accept(&self, request: Accept) -> Result<Accepted, AcceptError> {
        fn granted(accepted: &Accepted) -> Option<&ClaimToken> {
            match accepted {
                Accepted::New(claimed) => Some(&claimed.token),
                Accepted::Existing(_) => None,
            }
        }
        let shared = Arc::clone(&self.shared);
        grant(&self.shared, granted, async move { write!(shared, |tx| sql::accept(&tx, &request)) }).await
    }

    async fn run(&self, tenant: &Tenant, run_id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        let client = self.shared.reader().await?;
        sql::run(&client, tenant, run_id).await.map_err(|failure: Failure| failure.told())
    }

    async fn list_runs(&self, query: &ListRuns) -> Result<Vec<RunRecord>, StoreError> {
        let client = self.shared.reader().await?;
        sql::list_runs(&client, query).await.map_err(|failure| failure.told())
    }

    async fn find_active_run(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
    ) -> Result<Option<RunRecord>, StoreError> {
        let client = self.shared.reader().await?;
        sql::find_active_run(&client, tenant, thread).await.map_err(|failure| failure.told())
    }

    async fn claim(&self, request: Claim) -> Result<Claimed, ClaimError> {
        let shared = Arc::clone(&self.shared);
        grant(&self.shared, |claimed: &Claimed| Some(&claimed.token), async move {
            write!(shared, |tx| sql::claim(&tx, &request))
        })
        .await
    }

    async fn renew(
        &self,
        owner: &OwnerId,
        claims: &[(RunId, u64)],
        lease: Duration,
    ) -> Result<Vec<Renewed>, StoreError> {
        let clock = &*self.shared.ports.clock;
        let renewed = self
            .shared
            .renewals
            .with(async |client| sql::renew(client, owner, claims, lease, clock).await)
            .await;
        renewed.map_err(|failure| failure.told())
    }

    async fn release(&self, token: &ClaimToken) -> Result<(), StoreError> {
        release(&self.shared, token).await
    }

    async fn request_cancel(
        &self,
        tenant: &Tenant,
        run_id: &RunId,
        reason: CancelReason,
        detached_for: Option<Duration>,
    ) -> Result<CancelOutcome, StoreError> {
        write!(self.shared, |tx| async {
            sql::request_cancel(&tx, tenant, run_id, reason, detached_for).await.map(Ok)
        })
    }

    async fn note_stall(&self, token: &ClaimToken) -> Result<u32, WriteError> {
        write!(self.shared, |tx| sql::note_stall(&tx, token))
    }

    async fn announce(&self, host: &HostSeen, lasts: Duration) -> Result<(), StoreError> {
        write!(self.shared, |tx| async { sql::announce(&tx, host, lasts).await.map(Ok) })
    }

    async fn hosts(&self) -> Result<Vec<HostSeen>, StoreError> {
        let client = self.shared.reader().await?;
        sql::hosts(&client).await.map_err(|failure| failure.told())
    }

    async fn presence(&self, run_id: &RunId, host: &OwnerId, until: PresenceUntil) -> Result<(), StoreError> {
        write!(self.shared, |tx| async { sql::presence(&tx, run_id, host, until).await.map(Ok) })
    }
}
