//! Destroying what is due.

use outlast_store::ListInstances;

use super::{ReclaimOutcome, ReclaimResult, ReclaimedSandbox};
use crate::Host;
use crate::side_by_side::side_by_side;

/// How many sandboxes are listed at once.
const PAGE: usize = 100;
/// How many are destroyed at once.
const AT_ONCE: usize = 4;

impl Host {
    /// Destroys the sandboxes that are due and that this host reaches: those whose runs have ended and whose time is up, and
    /// those of which an earlier attempt failed. Never fails as a whole.
    pub async fn reclaim_due(&self) -> ReclaimResult {
        let host = &self.inner;
        let mut result = ReclaimResult::default();
        let mut query = ListInstances {
            machine: host.provider.machine().map(str::to_owned),
            due: true,
            limit: PAGE,
            ..ListInstances::default()
        };
        loop {
            let page = match host.store.list_instances(&query).await {
                Ok(page) => page,
                Err(error) => {
                    result.error = Some(error.to_string());
                    break;
                }
            };
            let full = page.len() == PAGE;
            query.after = page.last().map(|last| (last.created_at, last.instance_id.clone()));
            let done = side_by_side(page.clone(), AT_ONCE, |instance| {
                let host = self.clone();
                async move { Box::pin(host.destroy_sandbox(&instance.instance_id, false)).await }
            });
            for (instance, outcome) in page.into_iter().zip(done.await) {
                let outcome = match outcome {
                    Some(Ok(outcome)) => outcome,
                    Some(Err(error)) => ReclaimOutcome::DestroyFailed { error: error.to_string() },
                    None => ReclaimOutcome::DestroyFailed { error: "destroying it has panicked".to_owned() },
                };
                if let ReclaimOutcome::DestroyFailed { error } = &outcome {
                    tracing::warn!(sandbox = %instance.instance_id, error, "a sandbox could not be destroyed; it is tried again");
                }
                result.add(ReclaimedSandbox {
                    instance_id: instance.instance_id,
                    sandbox_key: instance.sandbox_key,
                    thread_id: instance.thread_id,
                    outcome,
                });
            }
            if !full {
                break;
            }
        }
        result
    }
}
