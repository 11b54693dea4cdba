//! What every store promises; each host is a store of its own on the same schema.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use outlast_core::{OwnerId, RunId};
use outlast_postgres::{PostgresConfig, PostgresStore};
use outlast_store::conformance::{Backend, HeldOpen, ManualClock};
use outlast_store::{Ports, Store};

use crate::support::{RowLock, Schema};

/// The time at which the suite's clocks begin.
const BEGIN: u64 = 1_700_000_000_000;

struct Database {
    schema: Schema,
    now: AtomicU64,
}

impl Database {
    async fn new() -> Database {
        let schema = Schema::new().await;
        Database { schema, now: AtomicU64::new(BEGIN) }
    }
}

#[async_trait::async_trait]
impl Backend for Database {
    async fn open(&self, owner: OwnerId, ports: Ports) -> Arc<dyn Store> {
        let mut config = PostgresConfig::new(self.schema.url.as_str(), owner, ports);
        config.connections = 4;
        let store = PostgresStore::open(config).await.expect("opened");
        self.schema.set_now(self.now.load(Ordering::SeqCst)).await;
        Arc::new(store)
    }

    /// The database's clock is the one that counts. The hosts' own stand still: nothing may depend on them.
    async fn pass(&self, _: &ManualClock, time: Duration) {
        let millis = u64::try_from(time.as_millis()).expect("short");
        let now = self.now.fetch_add(millis, Ordering::SeqCst) + millis;
        self.schema.set_now(now).await;
    }

    async fn hold_open(&self, run_id: &RunId) -> Option<Box<dyn HeldOpen>> {
        Some(Box::new(self.schema.lock(run_id.as_str()).await))
    }

    fn counts_from_boot(&self) -> bool {
        false
    }
}

#[async_trait::async_trait]
impl HeldOpen for RowLock {
    async fn waiting(&self) -> usize {
        RowLock::waiting(self).await
    }

    async fn let_go(self: Box<Self>) {
        self.release().await;
    }
}

outlast_store::conformance_tests!(Database::new().await);
