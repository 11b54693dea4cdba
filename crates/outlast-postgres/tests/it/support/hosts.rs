//! Processes that use a store, and waiting.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_core::{OwnerId, Tenant};
use outlast_postgres::{PostgresConfig, PostgresStore};
use outlast_store::conformance::Host;
use outlast_store::{Ports, StoreError};

/// A configuration as a process would have it.
pub fn config(url: &str, owner: &str) -> PostgresConfig {
    PostgresConfig::new(url, OwnerId::new(owner).expect("an owner id"), Ports::system())
}

/// A process with a store on the machine's own clock.
pub async fn host(url: &str, owner: &str) -> Host {
    host_with(config(url, owner)).await
}

pub async fn host_with(config: PostgresConfig) -> Host {
    let owner = config.owner.clone();
    let store = PostgresStore::open(config).await.expect("opened");
    Host { owner, store: Arc::new(store), tenant: Tenant::default() }
}

/// Waits until something holds.
pub async fn eventually(what: &str, within: Duration, mut holds: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !holds().await {
        assert!(start.elapsed() < within, "not within {within:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The answer, which must come in this time.
pub async fn within<T>(time: Duration, what: &str, answer: impl Future<Output = T>) -> T {
    tokio::time::timeout(time, answer).await.unwrap_or_else(|_| panic!("not within {time:?}: {what}"))
}

/// Does the same again and again while the store is away, as every caller does.
pub async fn retried<T, E: Into<Tried>>(mut work: impl AsyncFnMut() -> Result<T, E>) -> T {
    loop {
        if let Some(value) = settled(work().await) {
            return value;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The answer; none where the store is away.
pub fn settled<T, E: Into<Tried>>(answer: Result<T, E>) -> Option<T> {
    match answer.map_err(Into::into) {
        Ok(value) => Some(value),
        Err(Tried::Away) => None,
        Err(Tried::Failed(why)) => panic!("{why}"),
    }
}

/// Whether an error is that of a store that is away.
pub enum Tried {
    Away,
    Failed(String),
}

impl From<StoreError> for Tried {
    fn from(error: StoreError) -> Tried {
        if error.is_transient() { Tried::Away } else { Tried::Failed(error.to_string()) }
    }
}

macro_rules! tried {
    ($($error:ident),*) => {
        $(impl From<outlast_store::$error> for Tried {
            fn from(error: outlast_store::$error) -> Tried {
                match error {
                    outlast_store::$error::Store(error) => error.into(),
                    other => Tried::Failed(format!("{other:?}")),
                }
            }
        })*
    };
}
tried!(
    AcceptError,
    AppendError,
    ClaimError,
    DeleteError,
    FinishError,
    InstanceError,
    LeaseError,
    ReadError,
    RecordsError
);
