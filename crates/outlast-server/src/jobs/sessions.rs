//! What is done for sessions.

use outlast_core::decide::LeaseRefusal;
use outlast_runtime::Host;
use outlast_session::collect::GcOptions;
use outlast_session::upkeep::{CollectWorkspacesError, UpkeepOptions, WorkspaceGcOptions};
use outlast_store::LeaseError;

/// Collects bodies, of cold sessions, too, finishes deletions, and records where activity has ended.
pub(super) async fn look_after(host: Host, gc: GcOptions) -> Result<(), String> {
    let sessions = host.sessions().await.map_err(|error| error.to_string())?;
    let options = UpkeepOptions { gc, tenant: None, thorough: false };
    let result = sessions.upkeep(&options, &|| true).await;
    let deleted: u64 = result.sessions.iter().map(|session| session.result.deleted).sum();
    let stopped = result.sessions.iter().filter(|session| session.stopped).count();
    if deleted > 0 || stopped > 0 || !result.deleted.is_empty() {
        let finished = result.deleted.len();
        tracing::info!(bodies = deleted, stopped, finished, "looked after sessions");
    }
    if let Some(error) = result.error {
        return Err(error);
    }
    match result.sessions.iter().find_map(|told| told.error.as_ref().map(|error| (told, error))) {
        Some((told, error)) => Err(format!("session {}: {error}", told.session_id)),
        None => Ok(()),
    }
}

/// Collects snapshots, unless another host is at it.
pub(super) async fn collect_workspaces(host: Host, options: WorkspaceGcOptions) -> Result<(), String> {
    let sessions = host.sessions().await.map_err(|error| error.to_string())?;
    match sessions.collect_workspaces(&options).await {
        Ok(report) => {
            if report.quarantined + report.deleted + report.restored > 0 {
                tracing::info!(?report, "collected snapshots");
            }
            match report.missing.first() {
                None => Ok(()),
                Some(key) => Err(format!(
                    "{} objects of live snapshots are missing, {key} first",
                    report.missing.len()
                )),
            }
        }
        Err(CollectWorkspacesError::Lease(LeaseError::Refused(LeaseRefusal::Held { .. }))) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
