//! A session that this host looks after.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use outlast_core::decide::RecordsRefusal;
use outlast_core::ledger::{Kind, Record, SessionStopped, StopReason};
use outlast_store::{
    AppendRecords, LeaseError, NewRecord, ReadRecords, RecordsError, SessionHead, StoreError,
};
use tokio::task::JoinHandle;

use crate::collect::{GcError, GcOptions, GcResult};
use crate::lease::Lease;
use crate::lease::given_back;
use crate::{Sessions, fail};

/// A session under this host's lease, perhaps with a collection that is under way. Ends with [`Activity::stop`] or
/// [`Activity::close`]; dropped, its collection stops at the next delete and its lease runs out.
#[derive(Debug)]
pub struct Activity {
    sessions: Sessions,
    session: SessionHead,
    lease: Arc<Lease>,
    ending: Ending,
    collection: Option<JoinHandle<Result<GcResult, GcError>>>,
}

/// Tells the collection that nobody wants it any more, at the latest when the activity is dropped.
#[derive(Debug, Default)]
struct Ending(Arc<AtomicBool>);

impl Ending {
    fn tell(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.tell();
    }
}

/// Of the end of an activity.
#[derive(Debug, thiserror::Error)]
pub enum ActivityError {
    /// The end could not be recorded.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Sessions {
    /// Begins to look after a session, unless somebody else does.
    pub async fn look_after(&self, session: SessionHead) -> Result<Activity, LeaseError> {
        let lease = Arc::new(self.acquire_lease(&session.session_id).await?);
        let ending = Ending::default();
        Ok(Activity { sessions: self.clone(), session, lease, ending, collection: None })
    }
}

impl Activity {
    /// The lease.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Begins a collection beside whatever else goes on. One at a time: a second one waits for the first.
    pub async fn collect(&mut self, options: GcOptions) {
        self.join().await;
        let (sessions, session) = (self.sessions.clone(), self.session.clone());
        let (lease, ending) = (self.lease.clone(), self.ending.0.clone());
        self.collection = Some(tokio::spawn(async move {
            let wanted = || !ending.load(Ordering::SeqCst);
            sessions.open_object_gc(&session, &lease).gc_while(&options, &wanted).await
        }));
    }

    /// Waits for the collection, and tells what it has done; none where none was begun.
    pub async fn join(&mut self) -> Option<Result<GcResult, GcError>> {
        // One that has panicked has said so, and has done nothing that another pass does not finish.
        self.collection.take()?.await.ok()
    }

    /// Ends the session's activity: stops the collection and waits for it, records the end, gives the lease back. In this
    /// order: after the record, nobody deletes anything of the session that was decided before it; and as long as
    /// something may be deleted, nobody else holds the lease. False: something has happened in the session since it was
    /// looked at, so it is not at its end.
    pub async fn stop(mut self, reason: StopReason, note: Option<u64>) -> Result<bool, ActivityError> {
        self.ending.tell();
        self.join().await;
        fail::point("session.collected");
        let id = format!("session_stopped/{}", self.sessions.ports.entropy.nonce().as_str());
        let append = AppendRecords {
            tenant: self.session.tenant.clone(),
            thread_id: self.session.thread_id.clone(),
            expected_tip: Some(self.tip().await?),
            barrier: None,
            lease: Some(self.lease.token().clone()),
            pin: None,
            create: false,
            records: vec![NewRecord::new(id, Record::SessionStopped(SessionStopped { reason }))],
        };
        let stopped = match self.sessions.store.append_records(append).await {
            Ok(_) => true,
            Err(RecordsError::Refused(RecordsRefusal::TipMoved { .. })) => false,
            Err(error) => return Err(error.into()),
        };
        fail::point("session.stopped");
        given_back(self.release(note).await);
        Ok(stopped)
    }

    /// The tip that the ledger has if nothing has happened since it was looked at: its own collections' barriers, which
    /// nobody else writes under this lease, are nothing that has happened.
    async fn tip(&self) -> Result<u64, RecordsError> {
        let query = ReadRecords {
            session_id: self.session.session_id.clone(),
            after: self.session.tip,
            kinds: Vec::new(),
            max_records: 100,
            max_bytes: 1 << 20,
        };
        let since = self.sessions.store.read_records(&query).await?;
        let own = since.records.iter().take_while(|record| record.kind == Kind::Barrier.as_str());
        Ok(self.session.tip + own.count() as u64)
    }

    /// Stops the collection, waits for it, and gives the lease back.
    pub async fn close(mut self, note: Option<u64>) -> Result<(), StoreError> {
        self.ending.tell();
        self.join().await;
        self.release(note).await
    }

    async fn release(self, note: Option<u64>) -> Result<(), StoreError> {
        let Activity { lease, .. } = self;
        match Arc::try_unwrap(lease) {
            Ok(lease) => lease.release(note).await,
            // A collection that could not be joined still has it: it runs out when that ends.
            Err(_) => Ok(()),
        }
    }
}
