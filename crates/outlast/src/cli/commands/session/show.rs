//! `outlast session ls` and `show`.

use std::io::Write;
use std::time::Duration;

use outlast_core::decide::SessionState;
use outlast_core::transcript::Message;
use outlast_runtime::Host;
use outlast_session::Sessions;
use outlast_store::{Clock, ListSessions, SessionHead, SystemClock};
use serde_json::{Value, json};

use super::{find, records};
use crate::cli::commands;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::render::{printable, printable_text, write_table};
use crate::cli::say::{print_line, tell};
use crate::config::show_duration;

/// How many messages are read at a time.
const PAGE: usize = 500;

pub async fn list(context: &Context, host: &Host, limit: usize) -> Result<u8, Failure> {
    let sessions = host.sessions().await?;
    let query = ListSessions {
        tenant: Some(host.tenant().clone()),
        states: vec![SessionState::Active, SessionState::Deleting],
        newest: true,
        limit,
        ..ListSessions::default()
    };
    let found = sessions.store().list_sessions(&query).await?;
    if context.json {
        let mut values = Vec::new();
        for session in &found {
            values.push(value(&sessions, session).await?);
        }
        print_line!("{}", Value::Array(values));
        return Ok(0);
    }
    if found.is_empty() {
        tell!("outlast: no sessions");
        return Ok(0);
    }
    let now = SystemClock::new().wall_ms();
    let head = ["THREAD", "RUNS", "MESSAGES", "ACTIVE", "TITLE"].map(str::to_owned);
    let mut lines = Vec::new();
    for session in &found {
        let fold = sessions.fold(session).await.map_err(records)?;
        lines.push([
            printable(session.thread_id.as_str()),
            fold.runs.to_string(),
            fold.messages.to_string(),
            format!("{} ago", show_duration(Duration::from_millis(now.saturating_sub(session.active_at)))),
            fold.title.as_deref().map(printable).unwrap_or_default(),
        ]);
    }
    Ok(if write_table(&mut std::io::stdout().lock(), &head, &lines).is_err() { 141 } else { 0 })
}

async fn value(sessions: &Sessions, session: &SessionHead) -> Result<Value, Failure> {
    let fold = sessions.fold(session).await.map_err(records)?;
    let mut value = json!({
        "sessionId": session.session_id,
        "threadId": session.thread_id,
        "state": session.state,
        "createdAt": session.created_at,
        "activeAt": session.active_at,
        "records": session.tip,
    });
    if let (Some(object), Ok(Value::Object(more))) = (value.as_object_mut(), serde_json::to_value(&fold)) {
        object
            .extend(more.into_iter().filter(|(name, _)| !["version", "seq", "at"].contains(&name.as_str())));
    }
    if let Some(lease) = &session.lease {
        value["heldBy"] = json!({"owner": lease.owner, "epoch": lease.epoch, "remaining": lease.remaining});
    }
    Ok(value)
}

pub async fn show(
    context: &Context,
    host: &Host,
    name: &str,
    messages: bool,
    limit: Option<usize>,
) -> Result<u8, Failure> {
    let sessions = host.sessions().await?;
    let session = find(host, &sessions, name).await?;
    let mut out = std::io::stdout().lock();
    if messages {
        let (messages, missing) = transcript(&sessions, &session, limit).await?;
        let written = if context.json {
            writeln!(out, "{}", json!(messages))
        } else {
            commands::show::transcript(&mut out, &messages)
        };
        for told in missing {
            tell!("outlast: {}", printable_text(&told));
        }
        return Ok(if written.is_err() { 141 } else { 0 });
    }
    let value = value(&sessions, &session).await?;
    if context.json {
        return Ok(if writeln!(out, "{value}").is_err() { 141 } else { 0 });
    }
    Ok(if lines(&mut out, &session, &value).is_err() { 141 } else { 0 })
}

fn lines(out: &mut impl Write, session: &SessionHead, value: &Value) -> std::io::Result<()> {
    let now = SystemClock::new().wall_ms();
    let ago = |at: u64| format!("{} ago", show_duration(Duration::from_millis(now.saturating_sub(at))));
    let mut line = |name: &str, value: String| writeln!(out, "{name:<12}{value}");
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(printable);
    line("session", session.session_id.to_string())?;
    line("thread", printable(session.thread_id.as_str()))?;
    if let Some(title) = text("/title") {
        line("title", title)?;
    }
    line("began", ago(session.created_at))?;
    line("active", ago(session.active_at))?;
    line("records", session.tip.to_string())?;
    for (name, key) in [("messages", "messages"), ("runs", "runs"), ("snapshots", "checkpoints")] {
        line(name, value[key].to_string())?;
    }
    if let Some(run) = text("/lastRun/runId") {
        let status = text("/lastRun/status").unwrap_or_else(|| "live".to_owned());
        line("last run", format!("{run} ({status})"))?;
    }
    if let Some(reference) = text("/workspace/ref") {
        let seq = value["workspace"]["seq"].to_string();
        line("workspace", format!("{reference} (record {seq})"))?;
    }
    if let Some(at) = value.pointer("/stopped/at").and_then(Value::as_u64) {
        let reason = text("/stopped/reason").unwrap_or_default();
        line("stopped", format!("{} ({reason})", ago(at)))?;
    }
    if let Some(owner) = text("/heldBy/owner") {
        line("held by", owner)?;
    }
    Ok(())
}

/// The latest messages, the oldest first, and what is missing of them.
async fn transcript(
    sessions: &Sessions,
    session: &SessionHead,
    limit: Option<usize>,
) -> Result<(Vec<Message>, Vec<String>), Failure> {
    let limit = limit.unwrap_or(usize::MAX);
    let (mut found, mut missing, mut before) = (Vec::new(), Vec::new(), None);
    loop {
        let wanted = PAGE.min(limit - found.len());
        let page = sessions.messages(&session.tenant, &session.thread_id, before, wanted).await?;
        missing.extend(page.missing.iter().map(|lost| format!("{}: {}", lost.id, lost.error)));
        let rows = page.value.messages.into_iter().map(|row| row.message);
        found.splice(0..0, rows);
        before = page.value.before;
        if before.is_none() || found.len() >= limit {
            let over = found.len().saturating_sub(limit);
            return Ok((found.split_off(over), missing));
        }
    }
}
