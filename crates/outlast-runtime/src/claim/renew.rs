//! Renewing leases.

use std::sync::Weak;

use crate::host::Inner;

/// Renews every lease that the host holds at a third of its length, until the host is gone.
pub(crate) async fn renew_for_ever(host: Weak<Inner>) {
    loop {
        let Some(pause) = host.upgrade().map(|host| (host.options.lease / 3, host.ports.clock.clone()))
        else {
            return;
        };
        pause.1.sleep(pause.0).await;
        let Some(host) = host.upgrade() else {
            return;
        };
        if host.claims.is_empty() {
            continue;
        }
        let held = host.claims.list();
        let asked_at = host.ports.clock.boot_ms();
        match host.store.renew(&host.owner, &held, host.options.lease).await {
            Ok(answer) => host.claims.renewed(&answer, asked_at, &held),
            // The leases run on; holders stop by themselves when theirs may have run out.
            Err(error) => tracing::warn!(%error, "leases could not be renewed"),
        }
    }
}
