//! `outlast serve`.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use outlast_core::ErrorCode;
use outlast_runtime::PruneOptions;
use outlast_server::{Access, JobsConfig, Limits, Scheduled, Server, ServerConfig, Times, Token};
use outlast_session::collect::GcOptions;
use serde_json::json;
use tokio::net::TcpListener;

use crate::cli::args::ServeArgs;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::say::{print_line, tell};
use crate::cli::signals::Signals;
use crate::config::{Config, ConfiguredAgents, Limit, ServeConfig, show_duration};
use crate::doctor;

const LISTEN: &str = "127.0.0.1:7411";

pub async fn serve(context: &Context, args: &ServeArgs) -> Result<u8, Failure> {
    let section = &context.config.serve;
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let listen = args.listen.clone().or_else(|| set("OUTLAST_LISTEN")).or_else(|| section.listen.clone());
    let listen = listen.as_deref().unwrap_or(LISTEN);
    let token = token(args.token_file.as_deref(), set("OUTLAST_TOKEN"), section.token_file.as_deref())?;
    if let Some(agent) = &args.agent {
        context.config.spec(agent).map_err(Failure::usage)?;
    }
    let addresses = resolve(listen).await?;
    if token.is_none()
        && let Some(open) = addresses.iter().find(|address| !Server::is_private(address))
    {
        return Err(Failure::usage(format!(
            "{listen} is reached from other machines ({open}): say --token-file FILE, or set OUTLAST_TOKEN; `openssl rand \
             -hex 32` makes a token"
        )));
    }
    let mut signals = Signals::catch()?;
    let local = context.open_to_serve().await?;
    let listener = TcpListener::bind(addresses.as_slice()).await.map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::AddrInUse => ": another process has it; choose another with --listen",
            _ => "",
        };
        Failure::new(ErrorCode::Unavailable, format!("cannot listen on {listen}: {error}{hint}"))
    })?;
    let address = listener.local_addr()?;
    let agents = ConfiguredAgents::new(context.config.clone(), args.agent.clone());
    announce(context, address, token.is_some(), &agents);
    doctor::warn_at_start(Arc::clone(&local.host().ports().clock));
    if context.objects().is_none() && !matches!(context.store(), crate::StoreChoice::Embedded) {
        tracing::warn!(
            "large bodies and snapshots of workspaces are kept in this machine's data directory, where other hosts of the \
             same database cannot read them: name a place that all of them reach, [objects] place"
        );
    }
    let jobs = jobs(&context.config);
    log_times(&context.config);
    let server =
        Server::new(local.host().clone(), Arc::new(agents), ServerConfig { jobs, ..config(section, token) });
    let end = async {
        let why = signals.next().await;
        tracing::info!(?why, "ending: no new requests, claims are given back, agents work on");
        // A second signal does not wait.
        tokio::spawn(async move {
            let again = signals.next().await;
            tracing::warn!("ending at once; claims run out by themselves");
            std::process::exit(i32::from(again.status()));
        });
    };
    server.serve(listener, end).await;
    local.close().await;
    Ok(0)
}

fn announce(context: &Context, address: SocketAddr, token: bool, agents: &ConfiguredAgents) {
    let url = format!("http://{address}");
    if context.json {
        print_line!("{}", json!({"listening": url, "token": token, "agent": agents.default_agent()}));
    }
    let asks = if token { ", for whoever bears the token" } else { "" };
    let names: Vec<&str> = context.config.agents.keys().map(String::as_str).collect();
    let default = agents
        .default_agent()
        .map_or_else(String::new, |name| format!("; {name} unless a request names one"));
    tell!("outlast: serving {url}{asks}");
    tell!("outlast: data directory {}; agents {}{default}", context.data_dir.display(), names.join(", "));
}

fn config(section: &ServeConfig, token: Option<Token>) -> ServerConfig {
    let (limits, times) = (Limits::default(), Times::default());
    ServerConfig {
        access: Access { token, hosts: section.hosts.clone(), origins: section.cors_origins.clone() },
        limits: Limits {
            body: section.max_body.unwrap_or(limits.body),
            runs: section.max_runs.unwrap_or(limits.runs),
            viewers: section.max_viewers.unwrap_or(limits.viewers),
        },
        times: Times {
            heartbeat: section.heartbeat.unwrap_or(times.heartbeat),
            reconnect_grace: section.reconnect_grace.unwrap_or(times.reconnect_grace),
            ..times
        },
        jobs: JobsConfig::default(),
    }
}

/// What the server does again and again.
fn jobs(config: &Config) -> JobsConfig {
    let (reap, retention, sessions) = (&config.reap, &config.retention, &config.sessions);
    JobsConfig {
        reap: reap.schedule.then(|| Scheduled { every: reap.interval, options: super::reap::options(reap) }),
        reclaim: reap
            .reclaim_schedule
            .then_some(Scheduled { every: reap.reclaim_interval, options: reap.orphan_grace }),
        prune: retention.schedule.then(|| Scheduled {
            every: retention.interval,
            options: PruneOptions { keep_journals: retention.keep_journals, ..PruneOptions::default() },
        }),
        retain: retention
            .schedule
            .then(|| Scheduled { every: retention.interval, options: super::gc::options(retention) }),
        sessions: sessions.schedule.then_some(Scheduled {
            every: sessions.interval,
            options: GcOptions { grace: sessions.grace, dry_run: false },
        }),
        workspaces: sessions
            .schedule
            .then(|| Scheduled { every: sessions.interval, options: super::workspace::options(sessions) }),
    }
}

/// Says what will be stopped and deleted when: nobody should have to find that out.
fn log_times(config: &Config) {
    let limit = |limit: Limit| limit.duration().map_or_else(|| "never".to_owned(), show_duration);
    let (reap, retention) = (&config.reap, &config.retention);
    tracing::info!(
        detached_run_ttl = limit(reap.detached_run_ttl),
        interrupted_ttl = limit(reap.interrupted_ttl),
        sweep = if reap.schedule {
            format!("every {}", show_duration(reap.interval))
        } else {
            "not here".to_owned()
        },
        events = limit(retention.events),
        messages = limit(retention.messages),
        "what ends when"
    );
    if let (true, Limit::For(ttl)) = (reap.schedule, reap.detached_run_ttl)
        && reap.interval > ttl / 2
    {
        tracing::warn!(
            interval = ?reap.interval, ttl = ?ttl,
            "the sweep's interval is more than half of the time that runs may go on without a viewer: they may go on for \
             half as long again; shorten [reap] interval"
        );
    }
}

/// The token: of the file that the arguments name, else of the environment, else of the file that the configuration names.
fn token(
    named: Option<&Path>,
    environment: Option<String>,
    configured: Option<&Path>,
) -> Result<Option<Token>, Failure> {
    let of_file = |path: &Path| {
        let fail =
            |why: &dyn std::fmt::Display| Failure::usage(format!("the token file {}: {why}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| fail(&error))?;
        Token::new(&text).map(Some).map_err(|error| fail(&error))
    };
    match (named, environment, configured) {
        (Some(path), ..) => of_file(path),
        (None, Some(text), _) => {
            Token::new(&text).map(Some).map_err(|error| Failure::usage(format!("OUTLAST_TOKEN: {error}")))
        }
        (None, None, Some(path)) => of_file(path),
        (None, None, None) => Ok(None),
    }
}

async fn resolve(listen: &str) -> Result<Vec<SocketAddr>, Failure> {
    let found = tokio::net::lookup_host(listen).await.map_err(|error| {
        Failure::usage(format!("--listen {listen:?}: {error}; write HOST:PORT, as in {LISTEN} or [::1]:7411"))
    })?;
    Ok(found.collect())
}
