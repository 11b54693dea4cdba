//! Waiting for a value that another task sets.

use tokio::sync::watch;

/// Returns once the value is so, or once nobody can change it any more.
pub(crate) async fn until<T>(value: &mut watch::Receiver<T>, is_so: impl FnMut(&T) -> bool) {
    // The guard that comes back locks the value; it must not live on in whoever waits.
    let _ = value.wait_for(is_so).await;
}
