//! `outlast cancel`.

use std::time::Duration;

use outlast_core::RunId;
use outlast_core::run::{CancelReason, EndReason};

use crate::ErrorCode;
use crate::cli::args::RunArg;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::say::{print_line, tell};

/// Beyond the lease of a driver that is frozen: the time to kill a tree that ignores SIGTERM, and to read what it wrote.
const MARGIN: Duration = Duration::from_secs(12);

pub async fn cancel(context: &Context, args: &RunArg) -> Result<u8, Failure> {
    let run_id = RunId::new(args.run.as_str()).map_err(Failure::usage)?;
    let local = context.open().await?;
    let patience = context.config.lease.unwrap_or(Duration::from_secs(10)) + MARGIN;
    let report =
        local.host().cancel(&run_id, CancelReason::User, patience).await.map_err(|error| {
            match error.code() {
                ErrorCode::RunNotFound => Failure::not_found(&run_id),
                code => Failure::new(code, error),
            }
        })?;
    local.close().await;
    let run = &report.run;
    if context.json {
        print_line!("{}", serde_json::to_string(run).unwrap_or_default());
    }
    let say = |text: String| {
        if !context.json {
            tell!("outlast: {text}");
        }
    };
    if report.was_over {
        say(format!("run {run_id} had already ended ({})", run.status));
        return Ok(0);
    }
    if !run.status.is_terminal() {
        let message = "the cancel is recorded, but the run has not ended yet: its driver or its sandbox cannot be reached from here";
        return Err(Failure::new(ErrorCode::SandboxUnreachable, message));
    }
    if run.end_reason == Some(EndReason::CancelledUnverified) {
        let message = "the run is cancelled, but it could not be verified that all its processes ended; see docs/security.md";
        return Err(Failure::new(ErrorCode::UnsupportedCapability, message));
    }
    say(format!("run {run_id} is cancelled; no process of it lives"));
    Ok(0)
}
