//! Connections with one purpose.

use tokio::sync::Mutex;
use tokio_postgres::Client;

use super::target::Target;
use crate::failure::Tried;

/// A connection that is made again when it has broken. Renewals have one of their own, so that no load on the others
/// can keep a lease from being renewed in time.
pub(crate) struct Single {
    target: Target,
    client: Mutex<Option<Client>>,
}

impl std::fmt::Debug for Single {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Single")
    }
}

impl Single {
    pub(crate) fn new(target: &Target) -> Single {
        Single { target: target.clone(), client: Mutex::default() }
    }

    /// Does this on the connection. A failure closes it: the next use makes a new one.
    pub(crate) async fn with<T>(&self, work: impl AsyncFnOnce(&Client) -> Tried<T>) -> Tried<T> {
        let mut held = self.client.lock().await;
        let client = match held.take().filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => {
                let (client, connection) = self.target.config.connect(self.target.tls.clone()).await?;
                tokio::spawn(async move {
                    if let Err(error) = connection.await {
                        tracing::debug!(%error, "a connection to PostgreSQL ended");
                    }
                });
                client.batch_execute(&self.target.settings).await?;
                client
            }
        };
        let done = work(&client).await;
        if done.is_ok() {
            *held = Some(client);
        }
        done
    }
}
