//! Run records, claims, cancels and presence.

use std::time::Duration;

use async_trait::async_trait;
use outlast_core::run::{CancelReason, ClaimToken, RunRecord};
use outlast_core::{OwnerId, RunId, Tenant, ThreadId};
use outlast_store::{
    Accept, AcceptError, Accepted, CancelOutcome, Claim, ClaimError, Claimed, HostSeen, ListRuns,
    PresenceUntil, Renewed, Runs, StoreError, WriteError,
};

use super::SqliteStore;
use crate::sql;
use crate::writer::Urgency::{Normal, Urgent};

#[async_trait]
impl Runs for SqliteStore {
    async fn accept(&self, request: Accept) -> Result<Accepted, AcceptError> {
        fn granted(accepted: &Accepted) -> Option<&ClaimToken> {
            match accepted {
                Accepted::New(claimed) => Some(&claimed.token),
                Accepted::Existing(_) => None,
            }
        }
        self.grant(granted, move |tx| sql::accept(tx, &request)).await
    }

    async fn run(&self, tenant: &Tenant, run_id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        let (tenant, run_id) = (tenant.clone(), run_id.clone());
        self.view(move |view| sql::run(view, &tenant, &run_id)).await
    }

    async fn list_runs(&self, query: &ListRuns) -> Result<Vec<RunRecord>, StoreError> {
        let query = query.clone();
        self.view(move |view| sql::list_runs(view, &query)).await
    }

    async fn find_active_run(
        &self,
        tenant: &Tenant,
        thread: &ThreadId,
    ) -> Result<Option<RunRecord>, StoreError> {
        let (tenant, thread) = (tenant.clone(), thread.clone());
        self.view(move |view| sql::find_active_run(view, &tenant, &thread)).await
    }

    async fn claim(&self, request: Claim) -> Result<Claimed, ClaimError> {
        self.grant(|claimed: &Claimed| Some(&claimed.token), move |tx| sql::claim(tx, &request)).await
    }

    async fn renew(
        &self,
        owner: &OwnerId,
        claims: &[(RunId, u64)],
        lease: Duration,
    ) -> Result<Vec<Renewed>, StoreError> {
        let (owner, claims) = (owner.clone(), claims.to_vec());
        self.write(Urgent, move |tx| sql::renew(tx, &owner, &claims, lease).map(Ok)).await
    }

    async fn release(&self, token: &ClaimToken) -> Result<(), StoreError> {
        let token = token.clone();
        self.write(Urgent, move |tx| sql::release(tx, &token).map(Ok)).await
    }

    async fn request_cancel(
        &self,
        tenant: &Tenant,
        run_id: &RunId,
        reason: CancelReason,
        detached_for: Option<Duration>,
    ) -> Result<CancelOutcome, StoreError> {
        let (tenant, run_id) = (tenant.clone(), run_id.clone());
        self.write(Urgent, move |tx| sql::request_cancel(tx, &tenant, &run_id, reason, detached_for).map(Ok))
            .await
    }

    async fn note_stall(&self, token: &ClaimToken) -> Result<u32, WriteError> {
        let token = token.clone();
        self.write(Urgent, move |tx| sql::note_stall(tx, &token)).await
    }

    async fn announce(&self, host: &HostSeen, lasts: Duration) -> Result<(), StoreError> {
        let host = host.clone();
        self.write(Normal, move |tx| sql::announce(tx, &host, lasts).map(Ok)).await
    }

    async fn hosts(&self) -> Result<Vec<HostSeen>, StoreError> {
        self.view(sql::hosts).await
    }

    async fn presence(&self, run_id: &RunId, host: &OwnerId, until: PresenceUntil) -> Result<(), StoreError> {
        let (run_id, host) = (run_id.clone(), host.clone());
        self.write(Normal, move |tx| sql::presence(tx, &run_id, &host, until).map(Ok)).await
    }
}
