//! Opening a store.

use std::sync::Arc;

use outlast_store::{Signals, StoreError};
use tokio::sync::Semaphore;

use super::handle::{PostgresStore, Shared};
use crate::config::PostgresConfig;
use crate::connect::{Single, Target, pool};
use crate::notify::{Sender, listen_for_ever};
use crate::schema;

impl PostgresStore {
    /// Connects, and makes or migrates the tables.
    ///
    /// [`StoreError::Unusable`] where the URL is not understood, the database refuses this user, or its tables are
    /// somebody else's; [`StoreError::Unavailable`] where it does not answer.
    pub async fn open(config: PostgresConfig) -> Result<Self, StoreError> {
        let target = Target::parse(&config.url)?;
        let pool = pool(&target, config.connections)?;
        let deployment_id = schema::prepare(&pool, &*config.ports.entropy)
            .await
            .map_err(|failure| failure.told_of(&target.name))?;
        let sender = if config.notifications {
            Sender::spawn(Single::new(&target), Arc::clone(&config.ports.clock))
        } else {
            Sender::none()
        };
        let readers = Arc::new(Semaphore::new((pool.status().max_size / 2).max(1)));
        let shared = Arc::new(Shared {
            pool,
            readers,
            renewals: Single::new(&target.impatient()),
            ports: config.ports,
            owner: config.owner,
            signals: Signals::shared(),
            sender,
            deployment_id,
        });
        let listening =
            config.notifications.then(|| tokio::spawn(listen_for_ever(target, Arc::downgrade(&shared))));
        Ok(PostgresStore { shared, listening })
    }
}
