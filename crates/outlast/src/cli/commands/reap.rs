//! `outlast reap`.

use std::time::Duration;

use outlast_runtime::{ReapOptions, ReapOutcome, ReapResult, ReapRun};
use outlast_store::HostSeen;

use crate::cli::args::ReapArgs;
use crate::cli::context::Context;
use crate::cli::failure::{FAILED, Failure};
use crate::cli::render::{printable, printable_text};
use crate::cli::say::{print_line, tell};
use crate::config::ReapConfig;

/// For how long a sweep that somebody schedules says that its machine is seen to: longer than any sensible interval between
/// two of them.
const COMES_BACK: Duration = Duration::from_secs(900);

pub async fn reap(context: &Context, args: &ReapArgs) -> Result<u8, Failure> {
    if args.max_runs == Some(0) {
        return Err(Failure::usage("--max-runs 0 would do nothing: say at least 1"));
    }
    let usual = options(&context.config.reap);
    let options = ReapOptions {
        ttl: args.ttl,
        max_runs: args.max_runs.unwrap_or(usual.max_runs),
        run_budget: args.run_budget.unwrap_or(usual.run_budget),
        time_limit: args.time_limit,
        ..usual
    };
    let local = context.open().await?;
    let host = local.host();
    // So that no sweep of another machine takes this one's sandboxes for out of reach. Where the store does not answer, the
    // sweep itself will say so.
    let seen = HostSeen {
        owner: host.owner().clone(),
        machine: host.machine().map(str::to_owned),
        version: concat!("reap ", env!("CARGO_PKG_VERSION")).to_owned(),
        since: 0,
    };
    let _ = host.store().announce(&seen, COMES_BACK).await;
    let result = host.reap_detached_runs(&options).await;
    local.close().await;
    if context.json {
        print_line!("{}", serde_json::to_string(&result).unwrap_or_default());
    } else {
        show(&result);
    }
    Ok(if result.has_failed() { FAILED } else { 0 })
}

/// A sweep as the configuration has it.
pub fn options(config: &ReapConfig) -> ReapOptions {
    ReapOptions {
        interrupted_ttl: config.interrupted_ttl.duration(),
        max_runs: config.max_runs,
        run_budget: config.run_budget,
        ..ReapOptions::default()
    }
}

fn show(result: &ReapResult) {
    for run in result.runs.iter().filter(|run| run.outcome != ReapOutcome::Producing) {
        print_line!("{}", line(run));
    }
    let outcomes = match result.summary() {
        none if none.is_empty() => none,
        some => format!(": {some}"),
    };
    let runs = if result.considered == 1 { "run" } else { "runs" };
    tell!("outlast: {} detached {runs}, {} asked{outcomes}", result.considered, result.probed);
    if let Some(error) = &result.error {
        tell!("outlast: {}", printable_text(&error.message));
    }
}

fn line(run: &ReapRun) -> String {
    let mut line = format!("{}  {}", printable(run.run_id.as_str()), run.outcome.as_str());
    if let Some(status) = run.status {
        line.push_str(&format!("  {status}"));
    }
    if let Some(exit) = run.exit_code {
        line.push_str(&format!("  exited {exit}"));
    }
    if let Some(error) = &run.error {
        line.push_str(&format!("  {} ({})", printable(&error.message), error.code));
    }
    line
}
