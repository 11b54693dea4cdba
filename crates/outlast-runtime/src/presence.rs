//! Saying that somebody watches a run.

use std::sync::Arc;

use outlast_core::RunId;
use outlast_store::PresenceUntil;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::Host;
use crate::host::Inner;

/// Keeps a viewer present until [`Presence::leave`]. Dropped without it, the presence runs out by itself.
#[derive(Debug)]
pub struct Presence {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Host {
    /// Says that this host watches the run, now and again and again.
    pub fn watch(&self, run_id: &RunId) -> Presence {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(renew(Arc::clone(&self.inner), run_id.clone(), stopped));
        Presence { stop: Some(stop), task }
    }
}

impl Presence {
    /// The viewer is gone: nobody counts it from now on.
    pub async fn leave(mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        // A task that panicked or was cancelled with the runtime leaves a presence that runs out.
        let _ = self.task.await;
    }
}

async fn renew(host: Arc<Inner>, run_id: RunId, mut stopped: oneshot::Receiver<()>) {
    let tell = async |until| {
        if let Err(error) = host.store.presence(&run_id, &host.owner, until).await {
            tracing::debug!(%error, run = %run_id, "presence could not be renewed");
        }
    };
    loop {
        tell(PresenceUntil::For(host.options.presence)).await;
        tokio::select! {
            biased;
            stop = &mut stopped => {
                if stop.is_ok() {
                    tell(PresenceUntil::Left).await;
                }
                return;
            }
            () = host.ports.clock.sleep(host.options.presence / 3) => {}
        }
    }
}
