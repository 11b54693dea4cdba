//! `outlast reclaim`.

use std::time::Duration;

use outlast_core::{ErrorCode, RunId};
use outlast_runtime::{ReclaimOutcome, ReclaimResult};
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::failure::{FAILED, Failure};
use crate::cli::render::printable;
use crate::cli::say::{print_line, tell};
use crate::config::show_duration;

pub async fn reclaim(context: &Context, run: Option<&str>) -> Result<u8, Failure> {
    match run {
        Some(run) => of_run(context, run).await,
        None => all(context).await,
    }
}

async fn of_run(context: &Context, run: &str) -> Result<u8, Failure> {
    let run_id = RunId::new(run).map_err(Failure::usage)?;
    let local = context.open().await?;
    let host = local.host();
    let run = host.run(&run_id).await?.ok_or_else(|| Failure::not_found(&run_id))?;
    let outcome = host.reclaim_sandbox(&run).await?;
    local.close().await;
    if context.json {
        let mut value =
            json!({"runId": run_id, "instanceId": run.instance_id, "sandboxKey": run.sandbox_key});
        if let (Some(object), Ok(serde_json::Value::Object(told))) =
            (value.as_object_mut(), serde_json::to_value(&outcome))
        {
            object.extend(told);
        }
        print_line!("{value}");
    }
    if let ReclaimOutcome::InUse { run_id: user } = &outcome {
        let message = format!("the sandbox is in use by run {user}: wait for its end or cancel it");
        return Err(Failure::new(ErrorCode::ThreadBusy, message));
    }
    if outcome.has_failed() {
        return Err(Failure::new(ErrorCode::SandboxReclaimFailed, describe(&outcome)));
    }
    if !context.json {
        let hint = match (&outcome, &run.instance_id) {
            (ReclaimOutcome::Kept { .. }, Some(id)) => format!("; `outlast sandbox rm {id}` destroys it now"),
            _ => String::new(),
        };
        tell!("outlast: {}{hint}", describe(&outcome));
    }
    Ok(0)
}

/// The outcome for people.
pub fn describe(outcome: &ReclaimOutcome) -> String {
    match outcome {
        ReclaimOutcome::Destroyed => "the sandbox is destroyed".to_owned(),
        ReclaimOutcome::AlreadyGone => "the sandbox was gone already".to_owned(),
        ReclaimOutcome::DestroyFailed { error } => {
            format!("the sandbox could not be destroyed, and is tried again: {}", printable(error))
        }
        ReclaimOutcome::NoSandboxKey => "the run never had a sandbox".to_owned(),
        ReclaimOutcome::NotFound => "nothing is recorded of the sandbox".to_owned(),
        ReclaimOutcome::ProviderMismatch { provider } => {
            format!(
                "the sandbox is one of the provider {provider:?}, which is not used here; nothing was touched"
            )
        }
        ReclaimOutcome::Kept { remaining: Some(time) } => {
            format!("the sandbox is kept for {} more", show_duration(Duration::from_millis(*time)))
        }
        ReclaimOutcome::Kept { remaining: None } => {
            "the sandbox is kept until somebody removes it".to_owned()
        }
        ReclaimOutcome::InUse { run_id } => {
            format!("the sandbox is in use by run {}", printable(run_id.as_str()))
        }
        ReclaimOutcome::BeingDestroyed => "the sandbox is being destroyed by another process".to_owned(),
        ReclaimOutcome::Elsewhere { machine } => {
            format!(
                "the sandbox is on another machine ({}), and is destroyed by a host there",
                printable(machine)
            )
        }
    }
}

async fn all(context: &Context) -> Result<u8, Failure> {
    let local = context.open().await?;
    let result = local.host().reclaim_due().await;
    local.close().await;
    if context.json {
        print_line!("{}", serde_json::to_string(&result).unwrap_or_default());
    } else {
        show(&result);
    }
    Ok(if result.has_failed() { FAILED } else { 0 })
}

fn show(result: &ReclaimResult) {
    for sandbox in &result.sandboxes {
        print_line!("{}  {}", sandbox.instance_id, describe(&sandbox.outcome));
    }
    let ReclaimResult { considered, destroyed, failed, .. } = result;
    tell!("outlast: {considered} due, {destroyed} destroyed, {failed} may still be there");
    if let Some(error) = &result.error {
        tell!("outlast: {}", printable(error));
    }
}
