//! Collecting snapshots.

use std::time::Duration;

use outlast_core::decide::SessionState;
use outlast_core::duration::millis;
use outlast_store::{LeaseError, LeaseOn, ListSessions, StoreError};

use crate::lease::given_back;
use crate::workspace::{GcInput, GcReport, WorkspaceGcError};
use crate::{Sessions, WorkspaceScanError};

/// How snapshots are collected.
#[derive(Debug, Clone)]
pub struct WorkspaceGcOptions {
    /// How old an object must be to be put aside.
    pub grace: Duration,
    /// How long it stays aside before it is deleted.
    pub quarantine: Duration,
    /// Goes on also where far fewer snapshots are live than before.
    pub force: bool,
    /// Tells what would be done, and does nothing.
    pub dry_run: bool,
}

impl Default for WorkspaceGcOptions {
    fn default() -> Self {
        WorkspaceGcOptions {
            grace: Duration::from_secs(3600),
            quarantine: Duration::from_secs(24 * 3600),
            force: false,
            dry_run: false,
        }
    }
}

/// Why snapshots were not collected, or not to the end.
#[derive(Debug, thiserror::Error)]
pub enum CollectWorkspacesError {
    /// Somebody else collects.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// It is not known what is live. Nothing was done.
    #[error(transparent)]
    Scan(#[from] WorkspaceScanError),
    /// The collection stopped.
    #[error(transparent)]
    Gc(#[from] WorkspaceGcError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Sessions {
    /// Puts aside what no session's ledger names, and deletes what has been aside for long enough. Which sessions there are
    /// the store says; one that cannot be read means that nothing is done.
    pub async fn collect_workspaces(
        &self,
        options: &WorkspaceGcOptions,
    ) -> Result<GcReport, CollectWorkspacesError> {
        let lease = self.lease_on(LeaseOn::Workspaces).await?;
        let collected = self.collect_under(&lease, options).await;
        let note = match &collected {
            Ok(report) if !options.dry_run => Some(report.live_refs),
            _ => None,
        };
        // Without the note the next collection expects what was there before.
        given_back(lease.release(note).await);
        collected
    }

    async fn collect_under(
        &self,
        lease: &crate::Lease,
        options: &WorkspaceGcOptions,
    ) -> Result<GcReport, CollectWorkspacesError> {
        let now = self.store.now().await?;
        // Pins before the ledgers: a snapshot is pinned until a ledger names it, so it is seen here or there.
        let pins = self.store.pins().await?;
        let sessions = self.retained_sessions().await?;
        let live = self.workspace_live_refs(&sessions).await?;
        let input = GcInput {
            live,
            oldest_pin: pins.iter().map(|pin| pin.since).min(),
            now,
            grace: millis(options.grace),
            quarantine_for: millis(options.quarantine),
            previous_live: self.expected(lease.note()).await?,
            force: options.force,
            dry_run: options.dry_run,
        };
        Ok(self.workspaces().collect(&input, &|| lease.valid()).await?)
    }

    /// How many snapshots are to be expected: as many as last time, without those of sessions that were deleted since.
    async fn expected(&self, last: Option<(u64, u64)>) -> Result<Option<u64>, StoreError> {
        let Some((mut expected, at)) = last else { return Ok(None) };
        let states = vec![SessionState::Deleted];
        let mut pages = self.pages(ListSessions { states, ..ListSessions::default() });
        while let Some(page) = pages.next().await? {
            for session in page.iter().filter(|session| session.deleted_at.is_some_and(|gone| gone >= at)) {
                expected = expected.saturating_sub(session.note.map_or(0, |(held, _)| held));
            }
        }
        Ok(Some(expected))
    }
}
