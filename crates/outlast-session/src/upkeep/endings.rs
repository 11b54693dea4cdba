//! The end of activity, and of deletions.

use std::time::Duration;

use outlast_core::decide::SessionState;
use outlast_core::duration::millis;
use outlast_core::ledger::StopReason;
use outlast_store::{LeaseError, ListSessions, SessionHead, StoreError};

use super::{DeleteSessionError, DeletedSession, UpkeepOptions, UpkeepResult};
use crate::Sessions;

/// How long after a deletion its objects are looked for again: whoever was about to put one has put it by then, also one that
/// was frozen meanwhile, for days.
const LOOKS: [Duration; 2] = [Duration::from_secs(3600), Duration::from_secs(7 * 24 * 3600)];

impl Sessions {
    /// Records the end of the activity of sessions in which no run lives and of which no sandbox is left. That is known of
    /// the tip with which each was listed, and recorded only where that is still its tip.
    pub(super) async fn stop_idle(
        &self,
        options: &UpkeepOptions,
        result: &mut UpkeepResult,
    ) -> Result<(), StoreError> {
        let mut pages = self.pages(ListSessions {
            tenant: options.tenant.clone(),
            states: vec![SessionState::Active],
            idle_for: Some(Duration::ZERO),
            ..ListSessions::default()
        });
        while let Some(page) = pages.next().await? {
            for session in page {
                let Ok(fold) = self.fold(&session).await else { continue };
                if fold.stopped.is_some() || fold.runs == 0 {
                    continue;
                }
                let stopped = match self.look_after(session.clone()).await {
                    Ok(activity) => activity.stop(StopReason::Idle, None).await,
                    Err(LeaseError::Refused(_)) => Ok(false),
                    Err(LeaseError::Store(error)) => Err(error.into()),
                };
                let (stopped, error) = match stopped {
                    Ok(stopped) => (stopped, None),
                    Err(error) => (false, Some(error.to_string())),
                };
                if stopped || error.is_some() {
                    result.told(&session).stopped = stopped;
                    result.told(&session).error = error;
                }
            }
        }
        Ok(())
    }

    pub(super) async fn finish_deletions(
        &self,
        options: &UpkeepOptions,
        result: &mut UpkeepResult,
    ) -> Result<(), StoreError> {
        let now = self.store.now().await?;
        let states = vec![SessionState::Deleting, SessionState::Deleted];
        let tenant = options.tenant.clone();
        let mut pages = self.pages(ListSessions { tenant, states, ..ListSessions::default() });
        while let Some(page) = pages.next().await? {
            for session in page.into_iter().filter(|session| is_unfinished(session, now)) {
                let deleted = self.finish_delete(&session).await;
                tell(&session, deleted, result);
            }
        }
        Ok(())
    }
}

/// Whether a deletion is to be gone on with: it was interrupted, or another look is due and was not taken.
fn is_unfinished(session: &SessionHead, now: u64) -> bool {
    match (session.state, session.deleted_at) {
        (SessionState::Deleting, _) => true,
        (SessionState::Deleted, Some(at)) => {
            let looks = LOOKS.map(|after| at.saturating_add(millis(after)));
            let due = looks.into_iter().filter(|due| now >= *due).max();
            due.is_some_and(|due| session.note.is_none_or(|(_, noted)| noted < due))
        }
        _ => false,
    }
}

fn tell(
    session: &SessionHead,
    deleted: Result<DeletedSession, DeleteSessionError>,
    result: &mut UpkeepResult,
) {
    match deleted {
        Ok(deleted) if deleted.rows + deleted.objects > 0 => result.deleted.push(deleted),
        Ok(_) => {}
        // Somebody else is at it, or it was used since: nothing to tell.
        Err(DeleteSessionError::Lease(LeaseError::Refused(_)) | DeleteSessionError::Delete(_)) => {}
        Err(error) => result.told(session).error = Some(error.to_string()),
    }
}
