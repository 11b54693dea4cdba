//! The store's own life, and the way to its connections.

use std::ops::Deref;
use std::sync::Arc;

use async_trait::async_trait;
use deadpool_postgres::{Client, Pool};
use outlast_core::run::ClaimToken;
use outlast_core::{OwnerId, RunId};
use outlast_store::{Ports, Signals, Store, StoreError, StoreStats};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinHandle;

use crate::connect::{Single, WAIT};
use crate::failure::{Failure, unavailable};
use crate::notify::Sender;
use crate::sql;

/// What the tasks of a store share.
pub(crate) struct Shared {
    pub(crate) pool: Pool,
    /// Those who read take turns, so that however many they are, connections are left for those who write.
    pub(crate) readers: Arc<Semaphore>,
    /// Renewals have a connection of their own.
    pub(crate) renewals: Single,
    pub(crate) ports: Ports,
    pub(crate) owner: OwnerId,
    pub(crate) signals: Arc<Signals>,
    pub(crate) sender: Sender,
    pub(crate) deployment_id: String,
}

/// Durable state in PostgreSQL, for any number of hosts. Needs a Tokio runtime.
pub struct PostgresStore {
    pub(super) shared: Arc<Shared>,
    pub(super) listening: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").field("owner", &self.shared.owner).finish_non_exhaustive()
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        if let Some(listening) = &self.listening {
            listening.abort();
        }
    }
}

impl Shared {
    pub(crate) async fn client(&self) -> Result<Client, StoreError> {
        self.pool.get().await.map_err(|error| Failure::from(error).told())
    }

    /// A connection to read with.
    pub(crate) async fn reader(&self) -> Result<Reader, StoreError> {
        let turn = tokio::select! {
            biased;
            turn = Arc::clone(&self.readers).acquire_owned() => turn.map_err(|_| unavailable("the store is closed"))?,
            () = self.ports.clock.sleep(WAIT) => return Err(unavailable("too many wait to read")),
        };
        Ok(Reader { client: self.client().await?, _turn: turn })
    }

    /// Wakes who watches these runs, here and elsewhere.
    pub(crate) fn touched(&self, runs: &[RunId]) {
        for run_id in runs {
            self.signals.run_changed(run_id);
            self.sender.changed(run_id);
        }
    }
}

/// A connection for as long as somebody reads.
pub(crate) struct Reader {
    client: Client,
    _turn: OwnedSemaphorePermit,
}

impl Deref for Reader {
    type Target = Client;
    fn deref(&self) -> &Client {
        &self.client
    }
}

/// Carries out a transaction, again where it lost a race, and answers once it is committed.
macro_rules! write {
    ($shared:expr, |$tx:ident| $work:expr) => {{
        let shared = &$shared;
        let mut tries = 0;
        loop {
            let mut client = match shared.client().await {
                Ok(client) => client,
                Err(error) => break Err(error.into()),
            };
            let begun = client.transaction().await;
            let $tx = match begun {
                Ok(tx) => $crate::sql::Tx::new(tx, &*shared.ports.entropy, &shared.deployment_id),
                Err(error) => break Err($crate::failure::Failure::from(error).told().into()),
            };
            let outcome = $work.await;
            match $tx.end(outcome, &mut tries).await {
                $crate::sql::Next::Done(answer, touched) => {
                    shared.touched(&touched);
                    break answer;
                }
                $crate::sql::Next::Again => {}
            }
        }
    }};
}
pub(super) use write;

/// As a task of its own, for what grants a claim: a claim that nobody got to know of must not be renewed for ever with
/// the others of its owner, so it is given back where the caller has gone.
pub(super) async fn grant<T, E>(
    shared: &Arc<Shared>,
    granted: fn(&T) -> Option<&ClaimToken>,
    work: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    let (reply, answer) = oneshot::channel();
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let Err(unheard) = reply.send(work.await) else {
            return;
        };
        if let Ok(value) = &unheard
            && let Some(token) = granted(value)
            && let Err(error) = release(&shared, token).await
        {
            tracing::debug!(%error, "a claim that nobody waits for runs out by itself");
        }
    });
    answer.await.unwrap_or_else(|_| Err(unavailable("the store is closed").into()))
}

pub(super) async fn release(shared: &Arc<Shared>, token: &ClaimToken) -> Result<(), StoreError> {
    let released: Result<(), StoreError> =
        write!(shared, |tx| async { sql::release(&tx, token).await.map(Ok) });
    released
}

#[async_trait]
impl Store for PostgresStore {
    async fn deployment_id(&self) -> Result<String, StoreError> {
        // Asked anew, since whoever asks also wants to know whether the store answers.
        let client = self.shared.reader().await?;
        client.simple_query("SELECT 1").await.map_err(|error| Failure::from(error).told())?;
        Ok(self.shared.deployment_id.clone())
    }

    async fn now(&self) -> Result<u64, StoreError> {
        let client = self.shared.reader().await?;
        sql::now(&client).await.map_err(|failure| failure.told())
    }

    async fn stats(&self) -> Result<StoreStats, StoreError> {
        let client = self.shared.reader().await?;
        sql::stats(&client).await.map_err(|failure| failure.told())
    }

    async fn close(&self) {
        let owner = &self.shared.owner;
        let released: Result<(), StoreError> =
            write!(self.shared, |tx| async { sql::release_all(&tx, owner).await.map(Ok) });
        if let Err(error) = released {
            tracing::debug!(%error, "cannot give the claims back; they run out");
        }
        if let Some(listening) = &self.listening {
            listening.abort();
        }
        self.shared.pool.close();
    }
}
