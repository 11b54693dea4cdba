//! Deleting a session.

use std::time::Duration;

use outlast_core::decide::SessionState;
use outlast_core::ledger::SessionId;
use outlast_core::{Tenant, ThreadId};
use outlast_store::{DeleteError, LeaseError, ListSessions, SessionHead, SessionName, StoreError};
use serde::Serialize;

use crate::collect::StillWanted;
use crate::lease::given_back;
use crate::objects::ObjectsError;
use crate::{Lease, Sessions, fail};

/// How many rows go in one step, so that others have their turn.
const STEP_ROWS: usize = 500;

/// What was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletedSession {
    /// The session.
    pub session_id: SessionId,
    /// Its thread, which is not begun again.
    pub thread_id: ThreadId,
    /// How many of its runs.
    pub runs: u64,
    /// How many rows of the database.
    pub rows: u64,
    /// How many objects.
    pub objects: u64,
}

/// Why a session is not deleted, or not to the end. Another attempt goes on.
#[derive(Debug, thiserror::Error)]
pub enum DeleteSessionError {
    /// It lives, was used since, or there is none.
    #[error(transparent)]
    Delete(#[from] DeleteError),
    /// Somebody else looks after it.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The lease was lost on the way.
    #[error("the lease on session {0} was lost while it was being deleted: try again")]
    LeaseLost(SessionId),
    /// Object storage failed.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Sessions that have aged out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeletedIdle {
    /// What was deleted.
    pub sessions: Vec<DeletedSession>,
    /// Whether there are more.
    pub more: bool,
}

impl Sessions {
    /// Deletes a session with its runs, events, messages, records and bodies; with `idle_for` only where nothing has
    /// happened for so long. Snapshots go with the next collection of them, once nothing names them.
    ///
    /// The tombstone comes first: from then on nothing is added, and no run is accepted on the thread, whatever happens
    /// next. Then the rows, then the objects, which nothing points to any more; last the note that all is gone. A crash at
    /// any step leaves a session that is being deleted, which the next attempt, or the upkeep, finishes.
    pub async fn delete(
        &self,
        tenant: &Tenant,
        name: &SessionName,
        idle_for: Option<Duration>,
    ) -> Result<DeletedSession, DeleteSessionError> {
        fail::point("delete.tombstone.before");
        let session = self.store.begin_delete(tenant, name, idle_for).await?;
        fail::point("delete.tombstone.after");
        self.finish_delete(&session).await
    }

    /// Deletes sessions in which nothing has happened for so long, one after the other, while that is wanted. Those that
    /// somebody else is at, or that were used meanwhile, are left to the next time.
    pub async fn delete_idle(
        &self,
        tenant: &Tenant,
        idle_for: Duration,
        wanted: StillWanted<'_>,
    ) -> Result<DeletedIdle, DeleteSessionError> {
        let mut done = DeletedIdle::default();
        let mut pages = self.pages(idle(tenant, idle_for));
        while let Some(page) = pages.next().await? {
            for session in page {
                if !wanted() {
                    return Ok(DeletedIdle { more: true, ..done });
                }
                let name = SessionName::Id(session.session_id);
                match self.delete(tenant, &name, Some(idle_for)).await {
                    Ok(deleted) => done.sessions.push(deleted),
                    Err(DeleteSessionError::Lease(LeaseError::Refused(_)))
                    | Err(DeleteSessionError::Delete(DeleteError::Refused(_))) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(done)
    }

    /// How many sessions [`Sessions::delete_idle`] would delete.
    pub async fn count_idle(&self, tenant: &Tenant, idle_for: Duration) -> Result<u64, StoreError> {
        let mut count = 0;
        let mut pages = self.pages(idle(tenant, idle_for));
        while let Some(page) = pages.next().await? {
            count += page.len() as u64;
        }
        Ok(count)
    }

    /// Goes on with a session that is being deleted, or looks once more for objects of one that was.
    pub(crate) async fn finish_delete(
        &self,
        session: &SessionHead,
    ) -> Result<DeletedSession, DeleteSessionError> {
        // A collection that is under way elsewhere is not disturbed.
        let lease = self.acquire_lease(&session.session_id).await?;
        let deleted = self.delete_under(&lease, session).await;
        // How many snapshots it named: so many fewer are live, which is no reason for alarm.
        let named = match session.state {
            SessionState::Deleting => session.fold.as_ref().map_or(0, |fold| fold.checkpoints),
            _ => lease.note().map_or(0, |note| note.0),
        };
        // Also after a failure, so that the next attempt need not wait for the lease to run out.
        let note = deleted.is_ok().then_some(named);
        given_back(lease.release(note).await);
        deleted
    }

    async fn delete_under(
        &self,
        lease: &Lease,
        session: &SessionHead,
    ) -> Result<DeletedSession, DeleteSessionError> {
        let id = session.session_id.clone();
        let mut deleted = DeletedSession {
            session_id: id.clone(),
            thread_id: session.thread_id.clone(),
            runs: 0,
            rows: 0,
            objects: 0,
        };
        if session.state == SessionState::Deleting {
            loop {
                let swept = self.store.delete_rows(&id, STEP_ROWS).await?;
                fail::point("delete.rows");
                deleted.runs += swept.runs;
                deleted.rows += swept.rows;
                if !swept.more {
                    break;
                }
            }
        }
        for object in self.objects.list(&id.objects_prefix()).await? {
            if !lease.valid() {
                return Err(DeleteSessionError::LeaseLost(id));
            }
            self.objects.delete(&object.key).await?;
            fail::point("delete.object");
            deleted.objects += 1;
        }
        self.store.end_delete(&id).await?;
        fail::point("delete.ended");
        Ok(deleted)
    }
}

/// Sessions in which nothing has happened for so long.
fn idle(tenant: &Tenant, idle_for: Duration) -> ListSessions {
    ListSessions {
        tenant: Some(tenant.clone()),
        states: vec![SessionState::Active],
        idle_for: Some(idle_for),
        ..ListSessions::default()
    }
}
