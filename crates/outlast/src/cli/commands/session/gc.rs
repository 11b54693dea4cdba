//! `outlast session gc`.

use outlast_core::ErrorCode;
use outlast_runtime::Host;
use outlast_session::collect::{GcOptions, GcResult};
use outlast_session::upkeep::{CollectError, UpkeepOptions};
use outlast_store::{LeaseError, SessionHead};
use serde_json::json;

use super::find;
use crate::cli::context::Context;
use crate::cli::failure::{FAILED, Failure};
use crate::cli::render::{printable, printable_text};
use crate::cli::say::{print_line, tell};
use crate::count::count;

pub async fn collect(context: &Context, host: &Host, name: &str, options: &GcOptions) -> Result<u8, Failure> {
    let sessions = host.sessions().await?;
    let session = find(host, &sessions, name).await?;
    match sessions.collect(&session, options, &|| true).await {
        Ok(result) => {
            tell_collected(context, &session, &result);
            Ok(0)
        }
        Err(CollectError::Lease(LeaseError::Refused(refusal))) => {
            Err(Failure::new(ErrorCode::SessionHeld, format!("{refusal}: try again later")))
        }
        Err(CollectError::Lease(LeaseError::Store(error)) | CollectError::Store(error)) => Err(error.into()),
        Err(CollectError::Gc(error)) => {
            let partial = error.partial();
            if partial.deleted > 0 {
                tell_collected(context, &session, &partial);
            }
            Err(Failure::new(ErrorCode::BodyUnavailable, error))
        }
    }
}

fn tell_collected(context: &Context, session: &SessionHead, result: &GcResult) {
    if context.json {
        let mut value = serde_json::to_value(result).unwrap_or_default();
        value["sessionId"] = json!(session.session_id);
        value["threadId"] = json!(session.thread_id);
        print_line!("{value}");
        return;
    }
    for key in &result.deleted_keys {
        print_line!("{}", printable(key));
    }
    let verb = if result.dry_run { "would be deleted" } else { "deleted" };
    tell!(
        "outlast: {} {verb}; of {}, {} in use, {} left alone",
        count(result.deleted, "body"),
        result.scanned,
        result.referenced,
        result.kept
    );
}

pub async fn collect_all(context: &Context, host: &Host, gc: GcOptions) -> Result<u8, Failure> {
    let sessions = host.sessions().await?;
    let dry_run = gc.dry_run;
    let options = UpkeepOptions { gc, tenant: Some(host.tenant().clone()), thorough: true };
    let result = sessions.upkeep(&options, &|| true).await;
    let held = result.sessions.iter().any(|session| session.held_by.is_some());
    if context.json {
        print_line!("{}", json!(result.sessions));
    } else {
        let verb = if dry_run { "would be deleted" } else { "deleted" };
        for session in &result.sessions {
            let thread = printable(session.thread_id.as_str());
            match (&session.held_by, &session.error) {
                (Some(owner), _) => tell!("outlast: {thread}: held by {owner}"),
                (_, Some(error)) => tell!("outlast: {thread}: {}", printable_text(error)),
                _ if session.result.deleted > 0 => {
                    tell!("outlast: {thread}: {} {verb}", count(session.result.deleted, "body"));
                }
                _ => {}
            }
        }
        let deleted: u64 = result.sessions.iter().map(|session| session.result.deleted).sum();
        tell!("outlast: {} looked at; {} {verb}", count(result.looked_at, "session"), count(deleted, "body"));
    }
    if let Some(error) = &result.error {
        tell!("outlast: {}", printable_text(error));
    }
    Ok(if held || result.failed() { FAILED } else { 0 })
}
