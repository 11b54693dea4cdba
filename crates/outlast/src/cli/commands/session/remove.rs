//! `outlast session rm`.

use std::io::{IsTerminal, Write};

use outlast_core::{ErrorCode, ThreadId};
use outlast_runtime::{Host, ReclaimOutcome};
use outlast_session::upkeep::DeleteSessionError;
use outlast_store::{DeleteError, LeaseError, ListInstances, SessionHead, SessionName};
use serde_json::json;

use super::find_any;
use crate::cli::commands::reclaim;
use crate::cli::context::Context;
use crate::cli::failure::{FAILED, Failure};
use crate::cli::render::printable;
use crate::cli::say::{print_line, tell};
use crate::count::count;

pub async fn remove(context: &Context, host: &Host, name: &str, yes: bool) -> Result<u8, Failure> {
    let sessions = host.sessions().await?;
    let session = find_any(host, &sessions, name).await?;
    let thread = &session.thread_id;
    if !yes && !confirmed(&session)? {
        tell!("outlast: nothing was deleted");
        return Ok(FAILED);
    }
    let named = SessionName::Id(session.session_id.clone());
    let deleted = sessions.delete(host.tenant(), &named, None).await.map_err(|error| match error {
        DeleteSessionError::Delete(DeleteError::Refused(refusal)) => {
            Failure::new(ErrorCode::ThreadBusy, refusal)
        }
        DeleteSessionError::Lease(LeaseError::Refused(refusal)) => Failure::new(
            ErrorCode::SessionHeld,
            format!("{refusal}; what is left is deleted by the next `outlast session rm`, or by a server"),
        ),
        DeleteSessionError::Delete(DeleteError::Store(error))
        | DeleteSessionError::Lease(LeaseError::Store(error))
        | DeleteSessionError::Store(error) => error.into(),
        error => Failure::new(
            ErrorCode::BodyUnavailable,
            format!("{error}; what is left is deleted by the next `outlast session rm`, or by a server"),
        ),
    })?;
    let sandboxes = destroy_sandboxes(host, thread).await?;
    if context.json {
        let mut value = serde_json::to_value(&deleted).unwrap_or_default();
        value["sandboxes"] = json!(sandboxes);
        print_line!("{value}");
    } else {
        tell!(
            "outlast: thread {} is gone: {}, {}, {}, {}",
            printable(thread.as_str()),
            count(deleted.runs, "run"),
            count(deleted.rows, "row"),
            count(deleted.objects, "object"),
            count(sandboxes, "sandbox")
        );
    }
    Ok(0)
}

/// Destroys the thread's sandboxes that this host reaches; those of other machines are due there.
async fn destroy_sandboxes(host: &Host, thread: &ThreadId) -> Result<u64, Failure> {
    let mut query = ListInstances { limit: 100, ..ListInstances::default() };
    let mut destroyed = 0;
    loop {
        let page = host.store().list_instances(&query).await?;
        let Some(last) = page.last() else { return Ok(destroyed) };
        query.after = Some((last.created_at, last.instance_id.clone()));
        for instance in page {
            if instance.thread_id.as_ref() != Some(thread) || instance.tenant != *host.tenant() {
                continue;
            }
            let outcome = host.destroy_sandbox(&instance.instance_id, true).await?;
            match outcome {
                ReclaimOutcome::Destroyed => destroyed += 1,
                other => {
                    tell!("outlast: sandbox {}: {}", instance.instance_id, reclaim::describe(&other))
                }
            }
        }
    }
}

fn confirmed(session: &SessionHead) -> Result<bool, Failure> {
    let thread = printable(session.thread_id.as_str());
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage(format!(
            "thread {thread} would be deleted for ever, with {}: say --yes",
            count(session.tip, "record")
        )));
    }
    let _ = write!(
        std::io::stderr(),
        "Delete thread {thread} for ever, with its runs, messages and sandbox ({})? [y/N] ",
        count(session.tip, "record")
    );
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
