//! `outlast run`.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use outlast_core::decide::AcceptRefusal;
use outlast_core::run::{LaunchSpec, OnDisconnect, Workspace};
use outlast_core::{RunId, Seq, ThreadId};
use outlast_runtime::{KeepEnd, Start};
use outlast_store::{Entropy, SystemEntropy};

use super::follow::{Follow, follow, read_failure};
use crate::cli::args::RunArgs;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::render::printable;
use crate::cli::say::{print_line, tell};
use crate::cli::signals::{Signals, unless_left};
use crate::{Offset, StartError};

pub async fn run(context: &Context, args: RunArgs) -> Result<u8, Failure> {
    let start = start(context, &args)?;
    let mut signals = Signals::catch()?;
    let local = context.open().await?;
    let host = local.host();
    let run_id = start.run_id.clone();
    let lent = start.spec.workspace.is_some();
    // The record is written whole or not at all. A store that is away for long must not hold a terminal.
    let started = match unless_left(&mut signals, host.start(start)).await {
        Ok(started) => started.map_err(start_failure)?,
        Err(leave) => {
            tell!(
                "outlast: interrupted while run {run_id} was being recorded; `outlast ps` tells whether it was"
            );
            return Ok(leave.status());
        }
    };
    if !args.detach {
        // The record's thread: where the same request was made before, the one that was drawn now is no thread.
        let place =
            if lent { "" } else { ", in a directory of the thread's own (--workspace . works in yours)" };
        let (run, thread) = (printable(run_id.as_str()), printable(started.run.thread_id.as_str()));
        tell!("outlast: run {run} on thread {thread}{place}");
    }
    let status = if args.detach {
        detach(context, host, started).await
    } else {
        let presence = host.watch(&run_id);
        let on_disconnect = started.run.on_disconnect;
        let keeper = host.keep(started);
        let viewer = host.view(&run_id, Offset::After(Seq::START)).await.map_err(read_failure)?;
        let follower = Follow { run_id: &run_id, viewer, on_disconnect };
        follow(context, host, follower, Some(keeper), presence, &mut signals).await
    };
    local.close().await;
    status
}

/// Starts the agent and leaves.
async fn detach(context: &Context, host: &crate::Host, started: crate::Started) -> Result<u8, Failure> {
    let run_id = started.run.run_id.clone();
    let thread_id = started.run.thread_id.clone();
    let new = started.new;
    match host.launch_only(started).await {
        KeepEnd::Ended(run) => {
            if context.json {
                print_line!(
                    "{}",
                    serde_json::json!({"runId": run_id, "threadId": thread_id, "status": run.status})
                );
            } else {
                print_line!("{run_id}");
                let known = if new { "" } else { "this run exists: " };
                let attach = context.again.command("attach", &run_id);
                let thread = printable(thread_id.as_str());
                tell!("outlast: {known}{} on thread {thread}; `{attach}` follows it", run.status);
            }
            match &run.error {
                Some(error) if new => Err(Failure::new(crate::ErrorCode::LaunchFailed, &error.message)),
                _ => Ok(0),
            }
        }
        KeepEnd::CannotDrive { code, message } => Err(Failure::new(code, message)),
        KeepEnd::Store(error) => Err(error.into()),
        KeepEnd::NotFound | KeepEnd::Interrupted => Err(Failure::not_found(run_id)),
    }
}

fn start_failure(error: StartError) -> Failure {
    let hint = match error {
        StartError::Refused(AcceptRefusal::WorkspaceBusy { .. }) => " (--share-workspace, on both runs)",
        _ => "",
    };
    Failure::new(error.code(), format!("{error}{hint}"))
}

/// The request that the arguments make.
fn start(context: &Context, args: &RunArgs) -> Result<Start, Failure> {
    let config = &context.config;
    // The kind `command` needs no configuration, but it needs a command.
    let agent = args.agent.as_deref().filter(|name| *name != "command" || config.agents.contains_key(*name));
    let mut spec = match (agent, args.command.as_slice()) {
        (None, []) if args.agent.is_some() => {
            return Err(Failure::usage(
                "a command is no named agent: say it after --, as in `outlast run -- make test`",
            ));
        }
        (Some(name), []) => config.spec(name).map_err(Failure::usage)?,
        (Some(_), _) => return Err(Failure::usage("say either --agent NAME or -- COMMAND, not both")),
        (None, []) => {
            let names: Vec<&str> = config.agents.keys().map(String::as_str).collect();
            let names = names.join(", ");
            return Err(Failure::usage(format!("which agent? Say --agent NAME ({names}), or -- COMMAND…")));
        }
        (None, command) => LaunchSpec::command(locate(command), config.sandbox_spec(None)),
    };
    if args.model.is_some() {
        spec.model.clone_from(&args.model);
    }
    spec.prompt = prompt(args.prompt.as_deref())?;
    if spec.prompt.is_none() && spec.kind != "command" {
        return Err(Failure::usage(format!(
            "what is {} to do? Say it as an argument, or - to read it from standard input",
            spec.agent
        )));
    }
    if let Some(dir) = &args.workspace {
        spec.workspace = Some(Workspace { path: real_dir(dir)?, shared: args.share_workspace });
    }
    let mint = |prefix: &str| format!("{prefix}-{}", &SystemEntropy.hex_id()[..12]);
    let run_id = RunId::new(args.run_id.clone().unwrap_or_else(|| mint("run"))).map_err(Failure::usage)?;
    let thread_id =
        ThreadId::new(args.thread.clone().unwrap_or_else(|| mint("thread"))).map_err(Failure::usage)?;
    let usual = args.agent.as_ref().and_then(|name| config.agents.get(name)?.on_disconnect);
    let on_disconnect = args.on_disconnect.map(OnDisconnect::from).or(usual).unwrap_or(OnDisconnect::Detach);
    let ttl = args.detach_ttl.unwrap_or(config.reap.detached_run_ttl);
    Ok(Start {
        run_id,
        thread_id,
        thread_chosen: args.thread.is_some(),
        spec,
        detached_ttl: ttl.duration(),
        on_disconnect,
        messages: None,
        request: None,
    })
}

/// A program given by a relative path is meant as seen from here, not from the workspace.
fn locate(command: &[String]) -> Vec<String> {
    let mut argv = command.to_vec();
    if let Some(program) = argv.first_mut()
        && program.contains('/')
        && let Ok(absolute) = std::path::absolute(Path::new(program))
        && let Some(text) = absolute.to_str()
    {
        *program = text.to_owned();
    }
    argv
}

fn prompt(arg: Option<&str>) -> Result<Option<String>, Failure> {
    if arg != Some("-") {
        return Ok(arg.map(str::to_owned));
    }
    let mut stdin = std::io::stdin();
    if stdin.is_terminal() {
        tell!("outlast: reading the prompt from standard input; end it with Ctrl-D");
    }
    let mut text = String::new();
    stdin
        .read_to_string(&mut text)
        .map_err(|error| Failure::usage(format!("the prompt on standard input: {error}")))?;
    Ok(Some(text))
}

fn real_dir(dir: &Path) -> Result<String, Failure> {
    let fail = |why: &dyn std::fmt::Display| Failure::usage(format!("--workspace {}: {why}", dir.display()));
    let real: PathBuf = std::fs::canonicalize(dir).map_err(|error| fail(&error))?;
    if !real.is_dir() {
        return Err(fail(&"not a directory"));
    }
    real.into_os_string().into_string().map_err(|_| fail(&"its path is not UTF-8"))
}
