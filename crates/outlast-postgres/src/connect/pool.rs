//! The connections for reads and writes.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{
    ClientWrapper, Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime,
};
use outlast_store::StoreError;

use super::target::{CONNECT, Target};

/// How long to wait for a connection before the operation counts as one on a store that is away.
pub(crate) const WAIT: Duration = Duration::from_secs(5);

/// The pool. Nothing is connected yet.
pub(crate) fn pool(target: &Target, connections: usize) -> Result<Pool, StoreError> {
    let manager = Manager::from_config(
        target.config.clone(),
        target.tls.clone(),
        // A connection that broke is noticed by its next statement, which is answered as a store that is away.
        ManagerConfig { recycling_method: RecyclingMethod::Fast },
    );
    let settings: Arc<str> = target.settings.as_str().into();
    let begin = Hook::async_fn(move |client: &mut ClientWrapper, _| {
        let settings = Arc::clone(&settings);
        Box::pin(async move { client.batch_execute(&settings).await.map_err(HookError::Backend) })
    });
    Pool::builder(manager)
        .post_create(begin)
        .max_size(connections.max(2))
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(WAIT))
        .create_timeout(Some(CONNECT))
        .build()
        .map_err(|error| StoreError::Unusable { message: format!("no connections can be made: {error}") })
}
