//! `outlast show`.

use std::io::Write;
use std::time::Duration;

use outlast_core::RunId;
use outlast_core::run::RunRecord;
use outlast_core::transcript::{Message, Role};
use outlast_store::{Clock, SystemClock};
use serde_json::json;

use super::ps::{first_line, note, with_probe};
use crate::cli::args::ShowArgs;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::render::{printable, printable_text};
use crate::config::show_duration;

pub async fn show(context: &Context, args: &ShowArgs) -> Result<u8, Failure> {
    let run_id = RunId::new(args.run.as_str()).map_err(Failure::usage)?;
    let local = context.open().await?;
    let host = local.host();
    let run = host.run(&run_id).await?.ok_or_else(|| Failure::not_found(&run_id))?;
    let (probe, note) = note(context, host, &run).await;
    let messages: Option<Vec<Message>> = if args.messages {
        let rows = host.run_messages(&run).await?;
        Some(rows.into_iter().map(|row| row.message).collect())
    } else {
        None
    };
    let workspace = host.workspace(&run);
    local.close().await;
    let mut out = std::io::stdout().lock();
    let written = match (context.json, messages) {
        (true, Some(messages)) => writeln!(out, "{}", json!(messages)),
        (true, None) => writeln!(out, "{}", with_probe(&run, probe.as_ref())),
        (false, Some(messages)) => transcript(&mut out, &messages),
        (false, None) => record(&mut out, &run, &note, workspace.as_deref()),
    };
    Ok(if written.is_err() { 141 } else { 0 })
}

fn record(
    out: &mut impl Write,
    run: &RunRecord,
    note: &str,
    workspace: Option<&std::path::Path>,
) -> std::io::Result<()> {
    let now = SystemClock::new().wall_ms();
    let ago = |at: u64| format!("{} ago", show_duration(Duration::from_millis(now.saturating_sub(at))));
    let mut line = |name: &str, value: String| writeln!(out, "{name:<12}{value}");
    line("run", printable(run.run_id.as_str()))?;
    line("thread", printable(run.thread_id.as_str()))?;
    line("agent", printable(&run.agent))?;
    if let Some(model) = &run.model {
        line("model", printable(model))?;
    }
    line("status", format!("{} ({})", run.status, run.phase))?;
    if !note.is_empty() && !run.status.is_terminal() {
        line("", note.to_owned())?;
    }
    line("started", ago(run.started_at))?;
    if let Some(at) = run.finished_at {
        let took = Duration::from_millis(at.saturating_sub(run.started_at));
        line("ended", format!("{}, after {}", ago(at), show_duration(took)))?;
    }
    if let Some(reason) = run.end_reason {
        line("because", reason.to_string())?;
    }
    if let Some(code) = run.exit_code {
        line("exit status", code.to_string())?;
    }
    if let Some(error) = &run.error {
        line("error", format!("{}: {}", printable(&error.code), printable_text(&error.message)))?;
    }
    if let Some(at) = run.detached_since {
        line("detached", ago(at))?;
    }
    if let Some(cancel) = run.cancel_requested {
        line("cancel", format!("{}, {}", cancel.reason, ago(cancel.at)))?;
    }
    line("epoch", run.driver_epoch.to_string())?;
    line("events", run.tail.to_string())?;
    for usage in &run.usage {
        let model = usage.model.as_deref().unwrap_or("tokens");
        line("used", format!("{model}: {} in, {} out", usage.input_tokens, usage.output_tokens))?;
    }
    if let Some(workspace) = workspace {
        line("workspace", printable(&workspace.to_string_lossy()))?;
    }
    if run.spec.kind == "command" {
        line("command", printable(&run.spec.argv.join(" ")))?;
    }
    if let Some(prompt) = &run.spec.prompt {
        line("prompt", printable(first_line(prompt)))?;
    }
    let ttl =
        run.detached_ttl.map_or_else(|| "none".to_owned(), |ttl| show_duration(Duration::from_millis(ttl)));
    line("detach ttl", ttl)?;
    if let Some(instance) = &run.instance_id {
        line("instance", instance.to_string())?;
    }
    Ok(())
}

pub(super) fn transcript(out: &mut impl Write, messages: &[Message]) -> std::io::Result<()> {
    for (n, message) in messages.iter().enumerate() {
        if n > 0 {
            writeln!(out)?;
        }
        let content = message.content.as_deref().unwrap_or_default();
        match message.role {
            Role::Tool => {
                let outcome = if message.error.is_some() { "failed" } else { "result" };
                writeln!(out, "tool ({outcome}): {}", printable_text(content.trim_end()))?;
            }
            role => {
                if !content.is_empty() || message.tool_calls.is_empty() {
                    writeln!(out, "{}: {}", role.as_str(), printable_text(content.trim_end()))?;
                } else {
                    writeln!(out, "{}:", role.as_str())?;
                }
                for call in &message.tool_calls {
                    let arguments = first_line(&call.function.arguments);
                    writeln!(out, "  calls {} {}", printable(&call.function.name), printable(arguments))?;
                }
            }
        }
    }
    Ok(())
}
