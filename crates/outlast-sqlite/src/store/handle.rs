//! The store's own life, and the way to its threads.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use async_trait::async_trait;
use outlast_core::run::ClaimToken;
use outlast_store::{Store, StoreError, StoreStats};
use tokio::sync::mpsc;

use super::shared::Shared;
use crate::failure::{Tried, unavailable};
use crate::files::ProcessLock;
use crate::reader::Readers;
use crate::sql::{self, Tx, View};
use crate::watch::Watch;
use crate::writer::{Job, Queue, Urgency, Write};

/// Durable state in one SQLite file. Dropping it ends its threads after what is in flight, and its process counts as
/// dead for the others from then on; [`Store::close`] also waits and gives its claims back.
pub struct SqliteStore {
    pub(super) shared: Arc<Shared>,
    pub(super) queue: Arc<Queue>,
    pub(super) readers: Arc<Readers>,
    pub(super) watch: Watch,
    pub(super) held: Mutex<Option<Held>>,
    /// Closed when the last thread has ended.
    pub(super) ended: tokio::sync::Mutex<mpsc::Receiver<()>>,
}

/// What is let go of at the end.
pub(super) struct Held {
    pub(super) threads: Vec<JoinHandle<()>>,
    pub(super) _lock: ProcessLock,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").field("file", &self.shared.file).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Writes; returns once the commit is on the disk.
    pub(super) async fn write<T, E>(
        &self,
        urgency: Urgency,
        work: impl FnMut(&Tx<'_>) -> Tried<Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let (job, answer) = Write::new(work);
        self.queue(Box::new(job), urgency);
        answer.await.unwrap_or_else(|_| Err(closed().into()))
    }

    /// As [`SqliteStore::write`], for what grants a claim: given back where the caller has gone.
    pub(super) async fn grant<T, E>(
        &self,
        granted: fn(&T) -> Option<&ClaimToken>,
        work: impl FnMut(&Tx<'_>) -> Tried<Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let (job, answer) = Write::new(work);
        self.queue(Box::new(job.granting(granted)), Urgency::Urgent);
        answer.await.unwrap_or_else(|_| Err(closed().into()))
    }

    fn queue(&self, job: Box<dyn Job>, urgency: Urgency) {
        if let Err(job) = self.queue.push(job, urgency) {
            job.answer(Err(closed()), &self.queue);
        }
    }

    /// Reads from one snapshot.
    pub(super) async fn view<T: Send + 'static>(
        &self,
        work: impl FnOnce(&View<'_>) -> Tried<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.readers.read(work).await
    }

    fn end_threads(&self) {
        self.queue.close();
        self.readers.close();
        self.watch.stop();
    }

    /// Waits for the threads and lets go of the locks.
    fn let_go(&self) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Held { threads, _lock }) = held {
            for thread in threads {
                if thread.join().is_err() {
                    tracing::error!("a thread of the store has panicked");
                }
            }
            self.shared.owners.leave();
        }
    }
}

fn closed() -> StoreError {
    unavailable("the store is closed")
}

#[async_trait]
impl Store for SqliteStore {
    async fn deployment_id(&self) -> Result<String, StoreError> {
        Ok(self.shared.deployment_id.clone())
    }

    async fn now(&self) -> Result<u64, StoreError> {
        self.view(|view| Ok(view.wall())).await
    }

    async fn stats(&self) -> Result<StoreStats, StoreError> {
        self.view(sql::stats).await
    }

    async fn close(&self) {
        let owner = self.shared.owners.own().clone();
        let released: Result<(), StoreError> =
            self.write(Urgency::Urgent, move |tx| sql::release_all(tx, &owner).map(Ok)).await;
        if let Err(error) = released {
            // Claims and leases are void all the same, once this process does not hold its lock any more.
            tracing::debug!(%error, "cannot give the claims back");
        }
        self.end_threads();
        // Nothing is ever sent: this returns when the last thread has dropped its end.
        let _ = self.ended.lock().await.recv().await;
        self.let_go();
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.end_threads();
        self.let_go();
    }
}
