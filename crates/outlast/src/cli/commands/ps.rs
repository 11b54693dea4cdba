//! `outlast ps`.

use std::io::Write;
use std::time::Duration;

use outlast_core::run::{RunRecord, Status};
use outlast_runtime::{Host, RunProbe};
use outlast_store::{Clock, ListRuns, SystemClock};
use serde_json::json;

use crate::cli::args::PsArgs;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::render::{printable, shorten, write_table};
use crate::cli::say::tell;
use crate::config::show_duration;

const PAGE: usize = 500;
/// How much of a cause fits into a line; `outlast show` has all of it.
const CAUSE_CHARS: usize = 80;

pub async fn ps(context: &Context, args: &PsArgs) -> Result<u8, Failure> {
    let local = context.open().await?;
    let host = local.host();
    let runs = list(host, args.all).await?;
    let mut rows = Vec::with_capacity(runs.len());
    for run in &runs {
        rows.push(note(context, host, run).await);
    }
    local.close().await;
    let mut out = std::io::stdout().lock();
    let written = if context.json {
        let values: Vec<_> =
            runs.iter().zip(&rows).map(|(run, (probe, _))| with_probe(run, probe.as_ref())).collect();
        writeln!(out, "{}", serde_json::Value::Array(values))
    } else {
        table(&mut out, &runs, &rows, args.all)
    };
    // Whoever reads is gone: nothing is left to say.
    Ok(if written.is_err() { 141 } else { 0 })
}

async fn list(host: &Host, all: bool) -> Result<Vec<RunRecord>, Failure> {
    let mut query = ListRuns { tenant: host.tenant().clone(), limit: PAGE, ..ListRuns::default() };
    if !all {
        query.statuses = vec![Status::Running, Status::Interrupted];
    }
    let mut runs: Vec<RunRecord> = Vec::new();
    loop {
        let page = host.store().list_runs(&query).await?;
        let full = page.len() == PAGE;
        runs.extend(page);
        match runs.last() {
            Some(last) if full => query.after = Some((last.started_at, last.run_id.clone())),
            _ => return Ok(runs),
        }
    }
}

/// The record, and what the sandbox of a run without driver says.
pub(super) fn with_probe(run: &RunRecord, probe: Option<&RunProbe>) -> serde_json::Value {
    let mut value = serde_json::to_value(run).unwrap_or_default();
    if let (Some(object), Some(probe)) = (value.as_object_mut(), probe) {
        object.insert("probe".to_owned(), json!(probe));
    }
    value
}

/// What there is to say about the run: who drives it, or what its sandbox says where nobody does.
pub(super) async fn note(context: &Context, host: &Host, run: &RunRecord) -> (Option<RunProbe>, String) {
    if run.status.is_terminal() {
        let text = match (&run.error, run.exit_code) {
            (Some(error), _) => {
                let message = shorten(first_line(&error.message), CAUSE_CHARS);
                printable(&format!("{message} ({})", error.code))
            }
            (None, Some(code)) => format!("exited {code}"),
            (None, None) => String::new(),
        };
        return (None, text);
    }
    if let Some(driver) = &run.driver {
        let owner = driver.owner.as_str();
        let now = SystemClock::new().wall_ms();
        let watched = if run.detached_since.is_some() { ", nobody watches" } else { "" };
        return (
            None,
            format!(
                "driven by {} for {}, epoch {}{watched}",
                owner.get(..8).unwrap_or(owner),
                show_duration(Duration::from_millis(now.saturating_sub(driver.since))),
                run.driver_epoch
            ),
        );
    }
    let probe = host.probe(run).await;
    let attach = context.again.command("attach", &run.run_id);
    let text = match &probe {
        RunProbe::Finished { exit_code } => format!("exited {exit_code}, not collected: {attach}"),
        RunProbe::Producing => format!("working, nobody attached: {attach}"),
        RunProbe::NotLaunched => format!("not launched: {attach}"),
        RunProbe::Lost => format!("lost, not collected: {attach}"),
        RunProbe::Unknown { cause } => printable(&format!("unknown: {cause}")),
    };
    (Some(probe), text)
}

/// Says on standard error what the journal says of a run that nobody drives.
pub(super) async fn tell_undriven(context: &Context, host: &Host, run: &RunRecord) {
    if let (Some(_), text) = note(context, host, run).await {
        tell!("outlast: {text}");
    }
}

fn table(
    out: &mut impl Write,
    runs: &[RunRecord],
    rows: &[(Option<RunProbe>, String)],
    all: bool,
) -> std::io::Result<()> {
    if runs.is_empty() {
        tell!(
            "outlast: {}",
            if all { "no runs" } else { "no live runs; `outlast ps -a` lists those that ended" }
        );
        return Ok(());
    }
    let now = SystemClock::new().wall_ms();
    let lines: Vec<[String; 6]> = runs
        .iter()
        .zip(rows)
        .map(|(run, (_, note))| {
            let age = Duration::from_millis(now.saturating_sub(run.started_at));
            [
                printable(run.run_id.as_str()),
                printable(run.thread_id.as_str()),
                printable(&run.agent),
                run.status.to_string(),
                show_duration(age),
                note.clone(),
            ]
        })
        .collect();
    let head = ["RUN", "THREAD", "AGENT", "STATUS", "AGE", "NOTE"].map(str::to_owned);
    write_table(out, &head, &lines)
}

pub(super) fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
