//! Finding runs that nobody drives.

use outlast_core::run::Status;
use outlast_store::{ListRuns, StoreError};

use crate::app::App;

const PAGE: usize = 500;

/// Looks for runs without a driver: those of a process that ended or died, and those that were started and left alone.
pub(crate) async fn adopt(app: &App) -> Result<(), StoreError> {
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
