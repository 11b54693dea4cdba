//! `outlast session`.

use std::fs::File;
use std::io::{BufReader, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use outlast_core::decide::SessionState;
use outlast_core::transcript::Message;
use outlast_core::{ErrorCode, ThreadId};
use outlast_runtime::Host;
use outlast_session::collect::{GcOptions, GcResult};
use outlast_session::transfer::{ExportError, ExportOptions, ImportOptions};
use outlast_session::upkeep::{CollectError, DeleteSessionError, UpkeepOptions};
use outlast_session::{AddError, Sessions};
use outlast_store::{
    Clock, DeleteError, LeaseError, ListInstances, ListSessions, RecordsError, SessionHead, SystemClock,
};
use serde_json::{Value, json};

use crate::cli::args::SessionCommand;
use crate::cli::context::Context;
use crate::cli::failure::{FAILED, Failure};
use crate::cli::render::{printable, printable_text, write_table};
use crate::cli::say::{print_line, tell};
use crate::config::show_duration;

/// How many messages are read at a time.
const PAGE: usize = 500;

pub async fn session(context: &Context, command: SessionCommand) -> Result<u8, Failure> {
    let local = context.open().await?;
    let host = local.host();
    let status = match command {
        SessionCommand::Ls { limit } => list(context, host, limit).await,
        SessionCommand::Show { thread, messages, limit } => {
            show(context, host, &thread, messages, limit).await
        }
        SessionCommand::Export { thread, output, incomplete } => {
            export(context, host, &thread, &output, incomplete).await
        }
        SessionCommand::Import { file, thread } => import(context, host, &file, thread).await,
        SessionCommand::Gc { thread, all: _, dry_run, grace } => {
            let grace = grace.unwrap_or(context.config.sessions.grace);
            let options = GcOptions { grace, dry_run };
            match thread {
                Some(thread) => collect(context, host, &thread, &options).await,
                None => collect_all(context, host, options).await,
            }
        }
        SessionCommand::Rm { thread, yes } => remove(context, host, &thread, yes).await,
    };
    local.close().await;
    status
}

/// The session that is meant, or an error that says what to do.
pub(super) async fn find(host: &Host, sessions: &Sessions, name: &str) -> Result<SessionHead, Failure> {
    let found = sessions.find(host.tenant(), name).await?.ok_or_else(|| {
        let message = format!("there is no session of a thread {name:?}; `outlast session ls` lists them");
        Failure::new(ErrorCode::SessionNotFound, message)
    })?;
    if found.state != SessionState::Active {
        let message = format!("the session of thread {:?} was deleted", found.thread_id.as_str());
        return Err(Failure::new(ErrorCode::SessionDeleted, message));
    }
    Ok(found)
}

async fn list(context: &Context, host: &Host, limit: usize) -> Result<u8, Failure> {
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

async fn show(
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
            super::show::transcript(&mut out, &messages)
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

async fn export(
    context: &Context,
    host: &Host,
    name: &str,
    output: &Path,
    incomplete: bool,
) -> Result<u8, Failure> {
    let sessions = host.sessions().await?;
    let session = find(host, &sessions, name).await?;
    let options = ExportOptions { incomplete };
    let fail = |error: ExportError| match error {
        ExportError::Body { .. } => {
            Failure::new(ErrorCode::BodyUnavailable, format!("{error}; --incomplete goes on without it"))
        }
        error => Failure::new(ErrorCode::Internal, error),
    };
    if output == Path::new("-") {
        let mut out = BufWriter::new(std::io::stdout());
        let done = sessions.export(&session, &options, &mut out).await.map_err(fail)?;
        out.flush()?;
        tell!("outlast: exported {} records, {} bytes", done.records, done.bytes);
        return Ok(0);
    }
    // Beside the file and then in its place, so that one of before is lost to nothing that fails.
    let place =
        output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let name =
        output.file_name().ok_or_else(|| Failure::usage(format!("{} is no file name", output.display())))?;
    let partial = place.join(format!(".{}.partial", name.to_string_lossy()));
    let cannot = |error: std::io::Error| Failure::usage(format!("{}: {error}", output.display()));
    let file = File::create(&partial).map_err(cannot)?;
    let mut out = BufWriter::new(file);
    let written = async {
        let done = sessions.export(&session, &options, &mut out).await.map_err(fail)?;
        out.flush()?;
        out.get_ref().sync_all()?;
        std::fs::rename(&partial, output)?;
        Ok::<_, Failure>(done)
    };
    let done = match written.await {
        Ok(done) => done,
        Err(failure) => {
            let _ = std::fs::remove_file(&partial);
            return Err(failure);
        }
    };
    if context.json {
        let mut value = serde_json::to_value(&done).unwrap_or_default();
        value["file"] = json!(output);
        print_line!("{value}");
    } else {
        tell!("outlast: exported {} records, {} bytes, to {}", done.records, done.bytes, output.display());
        if done.incomplete > 0 {
            tell!("outlast: of {} of them, the body is missing", done.incomplete);
        }
    }
    let live = host.store().find_active_run(host.tenant(), &session.thread_id).await?;
    if let Some(run) = live {
        tell!(
            "outlast: run {:?} is live: what it has said so far is not in the file",
            printable(run.run_id.as_str())
        );
    }
    Ok(0)
}

async fn import(context: &Context, host: &Host, path: &Path, thread: Option<String>) -> Result<u8, Failure> {
    let thread_id = thread.map(ThreadId::new).transpose().map_err(Failure::usage)?;
    let name = |error: &dyn std::fmt::Display| Failure::usage(format!("{}: {error}", path.display()));
    let file = File::open(path).map_err(|error| name(&error))?;
    let sessions = host.sessions().await?;
    let options = ImportOptions { thread_id };
    use outlast_session::transfer::ImportError as E;
    let done =
        sessions.import(host.tenant(), BufReader::new(file), &options).await.map_err(
            |error| match error {
                E::File(_) | E::Record(_) | E::Taken { .. } => name(&error),
                E::Store(error) => error.into(),
                E::Records(error) | E::Add(AddError::Records(error)) => records(error),
                E::Objects(_) | E::Add(AddError::Objects(_)) => {
                    Failure::new(ErrorCode::BodyUnavailable, error)
                }
            },
        )?;
    if context.json {
        print_line!("{}", json!(done));
    } else {
        tell!(
            "outlast: thread {}: {} records added, {} were there",
            printable(done.thread_id.as_str()),
            done.added,
            done.known
        );
        if done.without_snapshot > 0 {
            tell!(
                "outlast: {} records name snapshots that are not in this object storage, and were left out",
                done.without_snapshot
            );
        }
    }
    Ok(0)
}

async fn collect(context: &Context, host: &Host, name: &str, options: &GcOptions) -> Result<u8, Failure> {
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
        let mut value = json!({"sessionId": session.session_id, "threadId": session.thread_id});
        if let (Some(object), Ok(Value::Object(more))) = (value.as_object_mut(), serde_json::to_value(result))
        {
            object.extend(more);
        }
        print_line!("{value}");
        return;
    }
    for key in &result.deleted_keys {
        print_line!("{}", printable(key));
    }
    let verb = if result.dry_run { "would go" } else { "are gone" };
    tell!(
        "outlast: {} bodies {verb}; of {}, {} are in use and {} are left alone",
        result.deleted,
        result.scanned,
        result.referenced,
        result.kept
    );
}

async fn collect_all(context: &Context, host: &Host, gc: GcOptions) -> Result<u8, Failure> {
    let sessions = host.sessions().await?;
    let dry_run = gc.dry_run;
    let options = UpkeepOptions { gc, tenant: Some(host.tenant().clone()), thorough: true };
    let result = sessions.upkeep(&options, &|| true).await;
    let held = result.sessions.iter().any(|session| session.held_by.is_some());
    if context.json {
        print_line!("{}", json!(result.sessions));
    } else {
        let verb = if dry_run { "would go" } else { "are gone" };
        for session in &result.sessions {
            let thread = printable(session.thread_id.as_str());
            match (&session.held_by, &session.error) {
                (Some(owner), _) => tell!("outlast: {thread}: held by {owner}"),
                (_, Some(error)) => tell!("outlast: {thread}: {}", printable_text(error)),
                _ if session.result.deleted > 0 => {
                    tell!("outlast: {thread}: {} bodies {verb}", session.result.deleted);
                }
                _ => {}
            }
        }
        let deleted: u64 = result.sessions.iter().map(|session| session.result.deleted).sum();
        tell!("outlast: {} sessions looked at; {deleted} bodies {verb}", result.looked_at);
    }
    if let Some(error) = &result.error {
        tell!("outlast: {}", printable_text(error));
    }
    Ok(if held || result.failed() { FAILED } else { 0 })
}

async fn remove(context: &Context, host: &Host, name: &str, yes: bool) -> Result<u8, Failure> {
    let sessions = host.sessions().await?;
    let session = sessions.find(host.tenant(), name).await?.ok_or_else(|| {
        let message = format!("there is no session of a thread {name:?}; `outlast session ls` lists them");
        Failure::new(ErrorCode::SessionNotFound, message)
    })?;
    let thread = &session.thread_id;
    if !yes && !confirmed(&session)? {
        tell!("outlast: nothing was deleted");
        return Ok(FAILED);
    }
    let named = outlast_store::SessionName::Id(session.session_id.clone());
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
            "outlast: thread {} is gone: {} runs, {} rows, {} objects, {sandboxes} sandboxes",
            printable(thread.as_str()),
            deleted.runs,
            deleted.rows,
            deleted.objects
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
                outlast_runtime::ReclaimOutcome::Destroyed => destroyed += 1,
                other => {
                    tell!("outlast: sandbox {}: {}", instance.instance_id, super::reclaim::describe(&other))
                }
            }
        }
    }
}

fn confirmed(session: &SessionHead) -> Result<bool, Failure> {
    let thread = printable(session.thread_id.as_str());
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage(format!(
            "thread {thread} would be deleted for ever, with {} records: say --yes",
            session.tip
        )));
    }
    let _ = write!(
        std::io::stderr(),
        "Delete thread {thread} for ever, with its runs, messages and sandbox ({} records)? [y/N] ",
        session.tip
    );
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

pub(super) fn records(error: RecordsError) -> Failure {
    match error {
        RecordsError::Store(error) => error.into(),
        RecordsError::Refused(refusal) => {
            use outlast_core::decide::RecordsRefusal as R;
            let code = match &refusal {
                R::SessionNotFound(_) => ErrorCode::SessionNotFound,
                R::SessionDeleted(_) => ErrorCode::SessionDeleted,
                _ => ErrorCode::Internal,
            };
            Failure::new(code, refusal)
        }
    }
}
