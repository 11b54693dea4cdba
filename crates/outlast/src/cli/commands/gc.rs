//! `outlast gc`.

use outlast_runtime::{Host, RetainOptions, RetainResult};
use outlast_session::collect::GcOptions;
use outlast_session::upkeep::{UpkeepOptions, UpkeepResult, WorkspaceGcOptions};
use outlast_session::workspace::GcReport;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::failure::{FAILED, Failure};
use crate::cli::render::printable_text;
use crate::cli::say::{print_line, tell};
use crate::config::RetentionConfig;
use crate::count::count;

/// What each part has done.
struct Done {
    retained: RetainResult,
    sessions: UpkeepResult,
    workspaces: Result<GcReport, String>,
}

pub async fn gc(context: &Context, dry_run: bool) -> Result<u8, Failure> {
    let local = context.open().await?;
    let done = all(context, local.host(), dry_run).await;
    local.close().await;
    let Done { retained, sessions, workspaces } = done?;
    let failed = retained.error.is_some() || sessions.failed() || workspaces.is_err();
    if context.json {
        let mut value = serde_json::to_value(&retained).unwrap_or_default();
        value["sessions"] = json!(sessions.sessions);
        value["deletedSessions"] = json!(retained.sessions + sessions.deleted.len() as u64);
        value["workspaces"] = match &workspaces {
            Ok(report) => json!(report),
            Err(error) => json!({ "error": error }),
        };
        print_line!("{value}");
        return Ok(if failed { FAILED } else { 0 });
    }
    let verb = if dry_run { "would be deleted" } else { "deleted" };
    tell!("outlast: {verb}: {} of {}", count(retained.events, "event"), count(retained.logs, "ended run"));
    if retained.sessions > 0 {
        tell!(
            "outlast: {verb}: {} in which nothing has happened for long",
            count(retained.sessions, "thread")
        );
    }
    let bodies: u64 = sessions.sessions.iter().map(|session| session.result.deleted).sum();
    tell!("outlast: {verb}: {} to which nothing points", count(bodies, "body"));
    match &workspaces {
        Ok(report) => super::workspace::tell_collected(report, dry_run),
        Err(error) => tell!("outlast: {}", printable_text(error)),
    }
    let errors = sessions.sessions.iter().filter_map(|session| session.error.as_ref());
    for error in retained.error.iter().chain(&sessions.error).chain(errors) {
        tell!("outlast: {}", printable_text(error));
    }
    Ok(if failed { FAILED } else { 0 })
}

async fn all(context: &Context, host: &Host, dry_run: bool) -> Result<Done, Failure> {
    let retained = host.retain(&RetainOptions { dry_run, ..options(&context.config.retention) }).await;
    let sessions = host.sessions().await?;
    let config = &context.config.sessions;
    let upkeep = UpkeepOptions {
        gc: GcOptions { grace: config.grace, dry_run },
        tenant: Some(host.tenant().clone()),
        thorough: false,
    };
    let looked_after = sessions.upkeep(&upkeep, &|| true).await;
    let collect = WorkspaceGcOptions { dry_run, ..super::workspace::options(config) };
    let workspaces = sessions.collect_workspaces(&collect).await.map_err(|error| error.to_string());
    Ok(Done { retained, sessions: looked_after, workspaces })
}

/// The retention as the configuration has it.
pub fn options(config: &RetentionConfig) -> RetainOptions {
    RetainOptions {
        events: config.events.duration(),
        messages: config.messages.duration(),
        ..RetainOptions::default()
    }
}
