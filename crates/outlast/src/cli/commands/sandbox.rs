//! `outlast sandbox`.

use std::time::Duration;

use outlast_core::{ErrorCode, InstanceId};
use outlast_runtime::{Host, Orphan, OrphanState, ReclaimOutcome, SandboxView};
use outlast_store::{Clock, SystemClock};
use serde_json::json;

use super::reclaim::describe;
use crate::cli::args::SandboxCommand;
use crate::cli::context::Context;
use crate::cli::failure::{FAILED, Failure};
use crate::cli::render::{printable, write_table};
use crate::cli::say::{print_line, tell};
use crate::config::show_duration;

pub async fn sandbox(context: &Context, command: &SandboxCommand) -> Result<u8, Failure> {
    let local = context.open().await?;
    let host = local.host();
    let status = match command {
        SandboxCommand::Ls => list(context, host).await,
        SandboxCommand::Rm { ids } => remove(context, host, ids).await,
        SandboxCommand::Orphans { destroy, grace } => {
            let grace = grace.unwrap_or(context.config.reap.orphan_grace);
            orphans(context, host, grace, *destroy).await
        }
    };
    local.close().await;
    status
}

async fn list(context: &Context, host: &Host) -> Result<u8, Failure> {
    let sandboxes = host.sandboxes().await?;
    if context.json {
        print_line!("{}", serde_json::to_string(&sandboxes).unwrap_or_default());
        return Ok(0);
    }
    if sandboxes.is_empty() {
        tell!("outlast: no sandboxes");
    }
    let now = SystemClock::new().wall_ms();
    let head = ["SANDBOX", "THREAD", "STATE", "AGE", "WAITS FOR"].map(str::to_owned);
    let lines: Vec<[String; 5]> = sandboxes
        .iter()
        .map(|sandbox| {
            [
                printable(sandbox.instance_id.as_str()),
                sandbox.thread_id.as_ref().map_or_else(|| "?".to_owned(), |id| printable(id.as_str())),
                sandbox.state.to_owned(),
                show_duration(Duration::from_millis(now.saturating_sub(sandbox.created_at))),
                waits_for(sandbox, now),
            ]
        })
        .collect();
    if lines.is_empty() {
        return Ok(0);
    }
    // Whoever reads is gone: nothing is left to say.
    Ok(if write_table(&mut std::io::stdout().lock(), &head, &lines).is_err() { 141 } else { 0 })
}

fn waits_for(sandbox: &SandboxView, now: u64) -> String {
    let mut text = match (&sandbox.run_id, sandbox.reclaim_at) {
        (Some(run), _) => format!("the end of run {}", printable(run.as_str())),
        (None, None) => "somebody to remove it".to_owned(),
        (None, Some(at)) if at > now => {
            let time = show_duration(Duration::from_millis(at - now));
            let what = if sandbox.failed_attempts > 0 {
                "the next attempt to destroy it"
            } else {
                "the thread's next run"
            };
            format!("{what}, for {time}")
        }
        (None, Some(_)) if sandbox.state == "destroying" => "being destroyed".to_owned(),
        (None, Some(_)) => "the next `outlast reclaim`, or a server".to_owned(),
    };
    if let Some(error) = &sandbox.error {
        text.push_str(&format!("; {} failed: {}", sandbox.failed_attempts, printable(error)));
    }
    if !sandbox.here {
        text.push_str("; on another machine");
    }
    if sandbox.lent {
        text.push_str("; works in a directory of yours, which stays");
    }
    text
}

async fn remove(context: &Context, host: &Host, ids: &[String]) -> Result<u8, Failure> {
    let all = host.sandboxes().await?;
    let mut found: Vec<InstanceId> = Vec::new();
    for id in ids {
        let matching: Vec<_> =
            all.iter().filter(|sandbox| sandbox.instance_id.as_str().starts_with(id)).collect();
        match matching.as_slice() {
            [one] => found.push(one.instance_id.clone()),
            [] => {
                let message = format!("there is no sandbox {id:?}; `outlast sandbox ls` lists them");
                return Err(Failure::new(ErrorCode::NotFound, message));
            }
            many => {
                let message = format!("{id:?} is the beginning of {} sandboxes: say more of it", many.len());
                return Err(Failure::usage(message));
            }
        }
    }
    let mut failed = false;
    let mut told = Vec::new();
    for id in found {
        let outcome = host.destroy_sandbox(&id, true).await?;
        failed |= outcome.has_failed() || matches!(outcome, ReclaimOutcome::InUse { .. });
        if context.json {
            let mut value = json!({"instanceId": id});
            if let (Some(object), Ok(serde_json::Value::Object(more))) =
                (value.as_object_mut(), serde_json::to_value(&outcome))
            {
                object.extend(more);
            }
            told.push(value);
        } else {
            print_line!("{id}  {}", describe(&outcome));
        }
    }
    if context.json {
        print_line!("{}", serde_json::Value::Array(told));
    }
    Ok(if failed { FAILED } else { 0 })
}

async fn orphans(context: &Context, host: &Host, grace: Duration, destroy: bool) -> Result<u8, Failure> {
    let found = host
        .orphans(grace, destroy)
        .await
        .map_err(|error| Failure::new(ErrorCode::SandboxUnreachable, error))?;
    let failed = found.iter().any(|orphan| matches!(orphan.state, OrphanState::Failed { .. }));
    if context.json {
        print_line!("{}", serde_json::to_string(&found).unwrap_or_default());
    } else if found.is_empty() {
        tell!("outlast: no sandboxes without a record");
    } else {
        let now = SystemClock::new().wall_ms();
        for orphan in &found {
            print_line!("{}", line(orphan, now));
        }
        let open =
            found.iter().any(|orphan| matches!(orphan.state, OrphanState::Unrecorded | OrphanState::Due));
        if open && !destroy {
            tell!(
                "outlast: `outlast sandbox orphans --destroy` puts aside, and later destroys, what is old enough"
            );
        }
    }
    Ok(if failed { FAILED } else { 0 })
}

fn line(orphan: &Orphan, now: u64) -> String {
    let since = orphan.since.map_or_else(String::new, |since| {
        format!(", {} old", show_duration(Duration::from_millis(now.saturating_sub(since))))
    });
    let state = match &orphan.state {
        OrphanState::TooYoung => "too young to judge".to_owned(),
        OrphanState::Unrecorded => "nothing is recorded of it".to_owned(),
        OrphanState::Quarantined => "put aside".to_owned(),
        OrphanState::Due => "to be destroyed".to_owned(),
        OrphanState::Destroyed => "destroyed".to_owned(),
        OrphanState::Failed { error } => format!("failed: {}", printable(error)),
    };
    format!("{}  {state}{since}", printable(&orphan.name))
}
