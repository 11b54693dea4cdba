//! Finding runs that nobody drives.

use std::sync::Arc;

use outlast_core::run::Status;
use outlast_store::{ListRuns, StoreError};

use crate::app::App;

const PAGE: usize = 500;

/// Looks for runs without a driver at once and again and again, for as long as the server takes on runs: those of a
/// process that ended or died, and those that were started and left alone.
pub(crate) async fn adopt_for_ever(app: Arc<App>) {
    loop {
        if app.is_ending() {
            return;
        }
        if let Err(error) = adopt(&app).await {
            tracing::warn!(%error, "runs without a driver could not be looked for");
        }
        app.host.ports().clock.sleep(app.config.times.adopt).await;
    }
}

async fn adopt(app: &App) -> Result<(), StoreError> {
    let host = &app.host;
    let mut query = ListRuns {
        tenant: host.tenant().clone(),
        statuses: vec![Status::Running],
        undriven: true,
        limit: PAGE,
        ..ListRuns::default()
    };
    loop {
        let runs = host.store().list_runs(&query).await?;
        for run in &runs {
            app.keepers.ensure(&run.run_id);
            app.viewers.expect(run);
        }
        match runs.last() {
            Some(last) if runs.len() == PAGE => query.after = Some((last.started_at, last.run_id.clone())),
            _ => return Ok(()),
        }
    }
}
