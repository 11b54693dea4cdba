//! `outlast workspace`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outlast_core::ledger::Trigger;
use outlast_core::{ErrorCode, RunId, ThreadId, WorkspaceRef};
use outlast_runtime::Host;
use outlast_session::upkeep::{CollectWorkspacesError, WorkspaceGcOptions};
use outlast_session::workspace::{
    GcReport, Progress, RestoreError, RestoreMode, RestoreOptions, WorkspaceReadError,
};
use outlast_session::{CheckpointError, RestoreWorkspaceError, Sessions, WorkspaceScanError};
use outlast_store::{Clock, Entropy, LeaseError, ListRuns, StoreError, SystemClock, SystemEntropy};
use serde_json::json;

use super::session::{find, records};
use crate::cli::args::{RestoreArgs, RestoreModeArg, WorkspaceCommand};
use crate::cli::context::Context;
use crate::cli::failure::{FAILED, Failure};
use crate::cli::render::{printable, printable_text, write_table};
use crate::cli::say::{print_line, tell};
use crate::config::{SessionsConfig, show_duration};
use crate::count::count;

pub async fn workspace(context: &Context, command: WorkspaceCommand) -> Result<u8, Failure> {
    let local = context.open().await?;
    let host = local.host();
    let status = match command {
        WorkspaceCommand::Checkpoint { thread, dir, exclude, include_secrets, gitignore } => {
            let extra = Extra { exclude, include_secrets, gitignore };
            checkpoint(context, host, &thread, dir, extra).await
        }
        WorkspaceCommand::Restore(args) => restore(context, host, args).await,
        WorkspaceCommand::Ls { thread } => list(context, host, &thread).await,
        WorkspaceCommand::Show { reference } => show(context, host, &reference).await,
        WorkspaceCommand::Gc { dry_run, force, grace, quarantine } => {
            let mut options = options(&context.config.sessions);
            options.grace = grace.unwrap_or(options.grace);
            options.quarantine = quarantine.unwrap_or(options.quarantine);
            gc(context, host, &WorkspaceGcOptions { dry_run, force, ..options }).await
        }
    };
    local.close().await;
    status
}

/// How snapshots are collected, as the configuration has it.
pub fn options(config: &SessionsConfig) -> WorkspaceGcOptions {
    WorkspaceGcOptions { grace: config.grace, quarantine: config.quarantine, ..WorkspaceGcOptions::default() }
}

struct Extra {
    exclude: Vec<String>,
    include_secrets: bool,
    gitignore: bool,
}

async fn checkpoint(
    context: &Context,
    host: &Host,
    thread: &str,
    dir: Option<PathBuf>,
    extra: Extra,
) -> Result<u8, Failure> {
    let thread_id = ThreadId::new(thread).map_err(Failure::usage)?;
    let (root, own) = match dir {
        Some(dir) => {
            let path = dir
                .canonicalize()
                .map_err(|error| Failure::usage(format!("--dir {}: {error}", dir.display())))?;
            (path, false)
        }
        None => match host.thread_workspace(&thread_id).await? {
            Some((path, instance)) => (path, !instance.lent),
            None => {
                return Err(Failure::new(
                    ErrorCode::NotFound,
                    format!(
                        "thread {thread:?} has no sandbox on this machine: name its directory with --dir DIR"
                    ),
                ));
            }
        },
    };
    let made = host
        .checkpoint(&thread_id, &root, Trigger::Manual, own, |options| {
            options.exclude.extend(extra.exclude);
            options.include_secrets |= extra.include_secrets;
            options.gitignore |= extra.gitignore;
            if std::io::stderr().is_terminal() && !context.json {
                options.progress = Some(Arc::new(progress));
            }
        })
        .await
        .map_err(failed)?;
    let snapshot = &made.snapshot;
    if context.json {
        let mut value = serde_json::to_value(&made).unwrap_or_default();
        value["threadId"] = json!(thread_id);
        print_line!("{value}");
        return Ok(0);
    }
    print_line!("{}", snapshot.reference);
    tell!(
        "outlast: {}, {}; {} stored ({}); {}",
        count(snapshot.files, "file"),
        bytes(snapshot.bytes),
        count(snapshot.uploaded_objects, "object"),
        bytes(snapshot.uploaded_bytes),
        made.consistency.as_str()
    );
    if snapshot.excluded > 0 {
        tell!("outlast: left out by patterns: {}", count(snapshot.excluded, "entry"));
    }
    for skipped in snapshot.skipped.iter().take(20) {
        let why = serde_json::to_value(&skipped.reason).unwrap_or_default();
        let why = why["reason"].as_str().unwrap_or_default().to_owned();
        tell!("outlast: not in it: {} ({why})", printable(&skipped.path));
    }
    if snapshot.skipped.len() > 20 {
        tell!("outlast: and {} more; --json lists them", snapshot.skipped.len() - 20);
    }
    Ok(0)
}

/// One line that is written over and over.
fn progress(progress: Progress) {
    use std::io::Write;
    if progress.files.is_multiple_of(100) || progress.files == progress.of_files {
        let end = if progress.files == progress.of_files { "\n" } else { "" };
        let _ = write!(
            std::io::stderr(),
            "\routlast: {} of {} files, {} of {}{end}",
            progress.files,
            progress.of_files,
            bytes(progress.bytes),
            bytes(progress.of_bytes)
        );
    }
}

fn failed(error: CheckpointError) -> Failure {
    match error {
        CheckpointError::Store(error) => error.into(),
        CheckpointError::Records(error) => records(error),
        error @ CheckpointError::Snapshot(_) => Failure::new(ErrorCode::SnapshotUnavailable, error),
    }
}

async fn restore(context: &Context, host: &Host, args: RestoreArgs) -> Result<u8, Failure> {
    let sessions = host.sessions().await?;
    let reference = wanted(host, &sessions, &args).await?;
    let mut options = RestoreOptions::new(SystemClock::new().wall_ms());
    options.mode = match args.mode {
        RestoreModeArg::Exact => RestoreMode::Exact,
        RestoreModeArg::Overlay => RestoreMode::Overlay,
    };
    let not_restored = |error| match error {
        RestoreError::Read(error) => unreadable(&reference, error),
        error => Failure::new(ErrorCode::SnapshotUnavailable, error),
    };
    if let Some(into) = &args.into {
        let restored = sessions.restore_to(&reference, into, &options).await.map_err(not_restored)?;
        return tell_restored(context, &restored, into);
    }
    let session = find(host, &sessions, &args.thread).await?;
    let thread_id = &session.thread_id;
    if let Some(run) = host.store().find_active_run(host.tenant(), thread_id).await? {
        return Err(Failure::new(
            ErrorCode::ThreadBusy,
            format!(
                "run {:?} works in the workspace: wait for its end or cancel it, or restore into another directory \
                 with --into DIR",
                run.run_id.as_str()
            ),
        ));
    }
    let record = (SystemEntropy.nonce().as_str().to_owned(), None);
    match host.thread_workspace(thread_id).await? {
        Some((path, _)) => {
            let before = last_run(host, thread_id).await?;
            let restored = sessions
                .restore_workspace(host.tenant(), thread_id, &reference, &path, &options, record)
                .await
                .map_err(|error| match error {
                    RestoreWorkspaceError::Restore(error) => not_restored(error),
                    RestoreWorkspaceError::Records(error) => records(error),
                })?;
            let status = tell_restored(context, &restored, &path)?;
            match last_run(host, thread_id).await? {
                // Nothing keeps runs away meanwhile, so that one cannot be kept from beginning by a restore that died.
                Some(run) if before.as_ref() != Some(&run) => Err(Failure::new(
                    ErrorCode::ThreadBusy,
                    format!(
                        "run {:?} began while the workspace was restored, so it may have seen some of either state: \
                         look at what it has done, or restore again after its end",
                        run.as_str()
                    ),
                )),
                _ => Ok(status),
            }
        }
        None => {
            // It must be there: the next run depends on it.
            let manifest = sessions.workspaces().manifest(&reference).await;
            manifest.map_err(|error| unreadable(&reference, error))?;
            sessions.choose_workspace(host.tenant(), thread_id, &reference, record).await.map_err(records)?;
            if context.json {
                print_line!("{}", json!({"ref": reference, "threadId": thread_id, "next": true}));
            } else {
                tell!(
                    "outlast: the thread has no sandbox on this machine; its next run begins with {reference}"
                );
            }
            Ok(0)
        }
    }
}

async fn last_run(host: &Host, thread_id: &ThreadId) -> Result<Option<RunId>, StoreError> {
    let tenant = host.tenant().clone();
    let query = ListRuns { tenant, thread_id: Some(thread_id.clone()), limit: 1, ..ListRuns::default() };
    Ok(host.store().list_runs(&query).await?.into_iter().next().map(|run| run.run_id))
}

/// What to say of a snapshot that cannot be read.
fn unreadable(reference: &WorkspaceRef, error: WorkspaceReadError) -> Failure {
    let name = reference.to_string();
    let digest = name.rsplit(':').next().unwrap_or_default();
    let message = match &error {
        WorkspaceReadError::Missing { key } if key.ends_with(digest) => {
            format!("there is no snapshot {name}; `outlast workspace ls THREAD` lists those of a thread")
        }
        error => error.to_string(),
    };
    Failure::new(ErrorCode::SnapshotUnavailable, message)
}

/// The snapshot that is meant.
async fn wanted(host: &Host, sessions: &Sessions, args: &RestoreArgs) -> Result<WorkspaceRef, Failure> {
    if let Some(reference) = &args.reference {
        return reference.parse().map_err(|error| Failure::usage(format!("{reference:?}: {error}")));
    }
    let session = find(host, sessions, &args.thread).await?;
    let found = match (&args.run, args.seq) {
        (Some(run), _) => {
            let run_id = RunId::new(run.as_str()).map_err(Failure::usage)?;
            sessions.workspace_checkpoint_by_turn(&session.session_id, &run_id).await.map_err(scan)?
        }
        (None, seq) => sessions
            .workspace_checkpoint_by_seq(&session.session_id, seq.unwrap_or_default())
            .await
            .map_err(scan)?,
    };
    found.map(|made| made.reference).ok_or_else(|| {
        Failure::new(
            ErrorCode::SnapshotUnavailable,
            format!("there is no such snapshot; `outlast workspace ls {}` lists them", args.thread),
        )
    })
}

fn tell_restored(
    context: &Context,
    restored: &outlast_session::workspace::Restored,
    into: &Path,
) -> Result<u8, Failure> {
    if context.json {
        let mut value = serde_json::to_value(restored).unwrap_or_default();
        value["into"] = json!(into);
        print_line!("{value}");
        return Ok(0);
    }
    let into = printable(&into.to_string_lossy());
    if restored.unchanged {
        tell!("outlast: {into} is that already");
    } else {
        tell!("outlast: {}, {}, restored to {into}", count(restored.files, "file"), bytes(restored.bytes));
    }
    if let Some(aside) = &restored.aside {
        tell!("outlast: what was in the way is in {}", printable(&aside.to_string_lossy()));
    }
    Ok(0)
}

async fn list(context: &Context, host: &Host, thread: &str) -> Result<u8, Failure> {
    let sessions = host.sessions().await?;
    let session = find(host, &sessions, thread).await?;
    let made = sessions.workspace_checkpoints(&session.session_id).await.map_err(scan)?;
    if context.json {
        print_line!("{}", json!(made));
        return Ok(0);
    }
    if made.is_empty() {
        tell!("outlast: no snapshots");
        return Ok(0);
    }
    let now = SystemClock::new().wall_ms();
    let head = ["SEQ", "AGE", "WHY", "CONSISTENCY", "RUN", "REF"].map(str::to_owned);
    let lines: Vec<[String; 6]> = made
        .iter()
        .map(|made| {
            [
                made.seq.to_string(),
                show_duration(Duration::from_millis(now.saturating_sub(made.at))),
                made.trigger.as_str().to_owned(),
                made.consistency.as_str().to_owned(),
                made.run_id.as_ref().map_or_else(|| "-".to_owned(), |run| printable(run.as_str())),
                made.reference.to_string(),
            ]
        })
        .collect();
    Ok(if write_table(&mut std::io::stdout().lock(), &head, &lines).is_err() { 141 } else { 0 })
}

async fn show(context: &Context, host: &Host, reference: &str) -> Result<u8, Failure> {
    let reference: WorkspaceRef =
        reference.parse().map_err(|error| Failure::usage(format!("{reference:?}: {error}")))?;
    let sessions = host.sessions().await?;
    let manifest = sessions.workspaces().manifest(&reference).await;
    let manifest = manifest.map_err(|error| unreadable(&reference, error))?;
    let mut out = std::io::stdout().lock();
    let written = if context.json {
        use std::io::Write;
        let mut value = serde_json::to_value(manifest.summary()).unwrap_or_default();
        value["entries"] = json!(manifest.entries());
        writeln!(out, "{value}")
    } else {
        entries(&mut out, &manifest)
    };
    Ok(if written.is_err() { 141 } else { 0 })
}

fn entries(
    out: &mut impl std::io::Write,
    manifest: &outlast_session::workspace::Manifest,
) -> std::io::Result<()> {
    use outlast_session::workspace::{EntryKind, escape};
    for entry in manifest.entries() {
        let path = escape(&entry.path);
        match entry.kind.clone() {
            EntryKind::Directory { mode } => writeln!(out, "d{mode:03o} {:>12}  {path}/", "-")?,
            EntryKind::File { mode, size, .. } => writeln!(out, "-{mode:03o} {size:>12}  {path}")?,
            EntryKind::Symlink { target } => {
                writeln!(out, "l777 {:>12}  {path} -> {}", "-", escape(&target))?;
            }
        }
    }
    let summary = manifest.summary();
    tell!(
        "outlast: {}, {}, {}, {}",
        count(summary.files, "file"),
        count(summary.directories, "directory"),
        count(summary.symlinks, "link"),
        bytes(summary.bytes)
    );
    Ok(())
}

async fn gc(context: &Context, host: &Host, options: &WorkspaceGcOptions) -> Result<u8, Failure> {
    let sessions = host.sessions().await?;
    match sessions.collect_workspaces(options).await {
        Ok(report) => {
            if context.json {
                print_line!("{}", json!(report));
            } else {
                tell_collected(&report, options.dry_run);
            }
            Ok(if report.missing.is_empty() { 0 } else { FAILED })
        }
        Err(CollectWorkspacesError::Lease(LeaseError::Refused(refusal))) => {
            Err(Failure::new(ErrorCode::SessionHeld, format!("{refusal}: try again later")))
        }
        Err(
            CollectWorkspacesError::Lease(LeaseError::Store(error)) | CollectWorkspacesError::Store(error),
        ) => Err(error.into()),
        Err(CollectWorkspacesError::Scan(error)) => Err(scan(error)),
        Err(CollectWorkspacesError::Gc(error)) => {
            if let (true, Some(report)) = (context.json, error.report()) {
                print_line!("{}", json!(report));
            }
            Err(Failure::new(ErrorCode::SnapshotUnavailable, error))
        }
    }
}

/// What a collection of snapshots has done.
pub fn tell_collected(report: &GcReport, dry_run: bool) {
    let (aside, gone) =
        if dry_run { ("would be put aside", "would be deleted") } else { ("put aside", "deleted") };
    tell!(
        "outlast: {} in use; {} ({}) {aside}, {} ({}) {gone}",
        count(report.live_refs, "snapshot"),
        count(report.quarantined, "object"),
        bytes(report.quarantined_bytes),
        report.deleted,
        bytes(report.deleted_bytes)
    );
    if report.foreign > 0 {
        tell!("outlast: not understood, and left alone: {}", count(report.foreign, "object"));
    }
    for key in &report.missing {
        tell!("outlast: missing: {}", printable_text(key));
    }
}

fn scan(error: WorkspaceScanError) -> Failure {
    Failure::new(ErrorCode::StoreUnavailable, error)
}

/// A size for people.
pub fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB"] {
        if value < 1024.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.1} GiB")
}
