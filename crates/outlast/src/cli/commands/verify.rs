//! `outlast verify`.

use outlast_core::RunId;
use serde_json::json;

use crate::VerifyError;
use crate::cli::args::RunArg;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::say::{print_line, tell};

pub async fn verify(context: &Context, args: &RunArg) -> Result<u8, Failure> {
    let run_id = RunId::new(args.run.as_str()).map_err(Failure::usage)?;
    let local = context.open().await?;
    let verified = local.host().verify(&run_id).await;
    local.close().await;
    let report = verified.map_err(|error| match &error {
        VerifyError::NotFound(run_id) => Failure::not_found(run_id),
        _ => Failure::new(error.code(), &error),
    })?;
    if context.json {
        print_line!(
            "{}",
            json!({
                "runId": run_id,
                "status": report.run.status,
                "whole": report.whole,
                "journalEvents": report.compared,
                "hostEvents": report.of_the_host,
            })
        );
    } else {
        let what = if report.whole { "the log" } else { "what is stored so far" };
        tell!(
            "outlast: {what} of run {run_id} is the translation of its journal: {} events of it, {} of the host",
            report.compared,
            report.of_the_host
        );
    }
    Ok(0)
}
