//! All sessions, one after the other.

use std::time::Duration;

use outlast_core::decide::{LeaseRefusal, SessionState};
use outlast_core::duration::millis;
use outlast_core::ledger::SessionId;
use outlast_core::{OwnerId, Tenant, ThreadId};
use outlast_store::{LeaseError, ListSessions, SessionHead, SessionName, StoreError};
use serde::Serialize;

use super::DeletedSession;
use crate::Sessions;
use crate::collect::{GcError, GcOptions, GcResult, StillWanted};
use crate::lease::given_back;

/// How long a session that was collected, and has had no new record since, is left alone: what events pointed to ages out
/// without a record.
const LOOK_AGAIN: Duration = Duration::from_secs(24 * 3600);

/// What is done.
#[derive(Debug, Clone, Default)]
pub struct UpkeepOptions {
    /// How bodies are collected.
    pub gc: GcOptions,
    /// Only of this tenant; none: of all.
    pub tenant: Option<Tenant>,
    /// Whether sessions are looked at in which nothing can have changed since the last time.
    pub thorough: bool,
}

/// What was done with one session.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Collected {
    /// The session.
    pub session_id: SessionId,
    /// Its thread.
    pub thread_id: ThreadId,
    /// What was collected; of a failure, what was before it.
    #[serde(flatten)]
    pub result: GcResult,
    /// Whether its activity was recorded to have ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// Who else looks after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by: Option<OwnerId>,
    /// Why it was not collected, or not to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What was done with all of them.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpkeepResult {
    /// Sessions of which something was collected, or of which that failed, or whose activity has ended.
    pub sessions: Vec<Collected>,
    /// How many were looked at.
    pub looked_at: u64,
    /// Sessions whose deletion was finished.
    pub deleted: Vec<DeletedSession>,
    /// Why it was not gone on with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Collected {
    fn of(session: &SessionHead) -> Collected {
        Collected {
            session_id: session.session_id.clone(),
            thread_id: session.thread_id.clone(),
            result: GcResult::default(),
            stopped: false,
            held_by: None,
            error: None,
        }
    }
}

impl UpkeepResult {
    /// What is told of the session.
    pub(super) fn told(&mut self, session: &SessionHead) -> &mut Collected {
        let found = self.sessions.iter().position(|told| told.session_id == session.session_id);
        let at = found.unwrap_or_else(|| {
            self.sessions.push(Collected::of(session));
            self.sessions.len() - 1
        });
        &mut self.sessions[at]
    }

    /// Whether anything failed.
    pub fn failed(&self) -> bool {
        self.error.is_some() || self.sessions.iter().any(|session| session.error.is_some())
    }
}

/// Of [`Sessions::collect`].
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// Somebody else looks after the session.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The collection stopped.
    #[error(transparent)]
    Gc(#[from] GcError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Sessions {
    /// Collects the bodies of one session, under a lease of its own.
    pub async fn collect(
        &self,
        session: &SessionHead,
        options: &GcOptions,
        wanted: StillWanted<'_>,
    ) -> Result<GcResult, CollectError> {
        if options.dry_run {
            return Ok(self.look_for_orphans(session, options.grace).await?);
        }
        let lease = self.acquire_lease(&session.session_id).await?;
        let collected = self.open_object_gc(session, &lease).gc_while(options, wanted).await;
        let note = match &collected {
            Ok(result) if result.kept == 0 => self.tip(session).await,
            _ => None,
        };
        given_back(lease.release(note).await);
        Ok(collected?)
    }

    /// Looks after every session: deletions that were interrupted are finished, bodies are collected (of busy sessions, too),
    /// and where no run lives and no sandbox is left, the end of the activity is
    /// recorded. Never fails as a whole.
    pub async fn upkeep(&self, options: &UpkeepOptions, wanted: StillWanted<'_>) -> UpkeepResult {
        let mut result = UpkeepResult::default();
        if let Err(error) = self.look_after_all(options, wanted, &mut result).await {
            result.error = Some(error.to_string());
        }
        result
    }

    async fn look_after_all(
        &self,
        options: &UpkeepOptions,
        wanted: StillWanted<'_>,
        result: &mut UpkeepResult,
    ) -> Result<(), StoreError> {
        if !options.gc.dry_run {
            self.finish_deletions(options, result).await?;
        }
        let (tenant, states) = (options.tenant.clone(), vec![SessionState::Active]);
        let mut pages = self.pages(ListSessions { tenant, states, ..ListSessions::default() });
        while let Some(page) = pages.next().await? {
            for session in page {
                if !wanted() {
                    return Ok(());
                }
                self.look_at(session, options, wanted, result).await;
            }
        }
        if !options.gc.dry_run {
            self.stop_idle(options, result).await?;
        }
        Ok(())
    }

    async fn look_at(
        &self,
        session: SessionHead,
        options: &UpkeepOptions,
        wanted: StillWanted<'_>,
        result: &mut UpkeepResult,
    ) {
        result.looked_at += 1;
        let mut told = Collected::of(&session);
        if options.thorough || self.is_due(&session).await {
            match self.collect_if_needed(&session, options, wanted).await {
                Ok(collected) => told.result = collected,
                Err(CollectError::Lease(LeaseError::Refused(LeaseRefusal::Held { owner, .. }))) => {
                    told.held_by = Some(owner);
                }
                Err(error) => {
                    if let CollectError::Gc(error) = &error {
                        told.result = error.partial();
                    }
                    told.error = Some(error.to_string());
                }
            }
        }
        let worth_telling = told.result.deleted > 0 || options.thorough;
        if worth_telling || told.error.is_some() || told.held_by.is_some() {
            result.sessions.push(told);
        }
    }

    /// A look first, which leaves no trace: most sessions have no orphans, and a barrier for each of them, every hour,
    /// would only make ledgers longer.
    async fn collect_if_needed(
        &self,
        session: &SessionHead,
        options: &UpkeepOptions,
        wanted: StillWanted<'_>,
    ) -> Result<GcResult, CollectError> {
        let seen = self.look_for_orphans(session, options.gc.grace).await?;
        if options.gc.dry_run {
            return Ok(seen);
        }
        if seen.deleted > 0 {
            return self.collect(session, &options.gc, wanted).await;
        }
        if seen.kept == 0 {
            self.note(session).await?;
        }
        Ok(GcResult { dry_run: false, ..seen })
    }

    /// Notes that there was nothing to collect up to the session's tip.
    async fn note(&self, session: &SessionHead) -> Result<(), CollectError> {
        let lease = self.acquire_lease(&session.session_id).await?;
        lease.release(Some(session.tip)).await?;
        Ok(())
    }

    async fn is_due(&self, session: &SessionHead) -> bool {
        let Some((tip, at)) = session.note else { return true };
        let now = self.store.now().await.unwrap_or(u64::MAX);
        tip != session.tip || now.saturating_sub(at) >= millis(LOOK_AGAIN)
    }

    async fn tip(&self, session: &SessionHead) -> Option<u64> {
        let name = SessionName::Id(session.session_id.clone());
        let now = self.store.session(&session.tenant, &name).await.ok()??;
        // Its own barrier is nothing new.
        (now.tip == session.tip + 1 && now.barrier == now.tip).then_some(now.tip)
    }
}
