//! All jobs.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use outlast_runtime::Host;
use outlast_store::HostSeen;

use super::job::every;
use crate::app::App;
use crate::keep::adopt;
use crate::until::until;

/// How often a host says that it is alive, and for how long that counts: long enough that a store which is away for a moment
/// does not make other machines take this one's sandboxes for out of reach.
const ANNOUNCE: Duration = Duration::from_secs(10);
const ALIVE: Duration = Duration::from_secs(90);

/// Does all jobs until the server is about to end. What is under way then is dropped: every step of it may be the last
/// one of a process.
pub(crate) async fn run_for_ever(app: Arc<App>) {
    let mut ending = app.ending.subscribe();
    let jobs = pin!(all(&app));
    tokio::select! {
        biased;
        () = until(&mut ending, |ending| *ending) => {}
        () = jobs => {}
    }
}

async fn all(app: &Arc<App>) {
    let (host, config) = (&app.host, &app.config.jobs);
    let job = |name, interval, work| every_boxed(app, name, interval, work);
    let seen = seen(host);
    let mut running: Vec<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>> = Vec::new();
    running.push(job("announce", ANNOUNCE, {
        let host = host.clone();
        Box::new(move || {
            let (host, seen) = (host.clone(), seen.clone());
            Box::pin(
                async move { host.store().announce(&seen, ALIVE).await.map_err(|error| error.to_string()) },
            )
        })
    }));
    running.push(job("adopt", app.config.times.adopt, {
        let app = Arc::clone(app);
        Box::new(move || {
            let app = Arc::clone(&app);
            Box::pin(async move { adopt(&app).await.map_err(|error| error.to_string()) })
        })
    }));
    if let Some(scheduled) = config.reap.clone() {
        let app = Arc::clone(app);
        running.push(job(
            "reap",
            scheduled.every,
            Box::new(move || {
                let (app, options) = (Arc::clone(&app), scheduled.options.clone());
                Box::pin(async move {
                    let result = app.host.reap_detached_runs(&options).await;
                    app.swept.add(&result);
                    result.error.map_or(Ok(()), |error| Err(error.message))
                })
            }),
        ));
    }
    if let Some(scheduled) = config.reclaim.clone() {
        let host = host.clone();
        running.push(job(
            "reclaim",
            scheduled.every,
            Box::new(move || {
                let (host, grace) = (host.clone(), scheduled.options);
                Box::pin(async move {
                    let result = host.reclaim_due().await;
                    if result.destroyed + result.failed > 0 {
                        tracing::info!(
                            destroyed = result.destroyed,
                            failed = result.failed,
                            "reclaimed sandboxes"
                        );
                    }
                    let orphans = host.orphans(grace, true).await.map(|_| ());
                    result.error.map_or(orphans, Err)
                })
            }),
        ));
    }
    if let Some(scheduled) = config.prune.clone() {
        let host = host.clone();
        running.push(job(
            "prune",
            scheduled.every,
            Box::new(move || {
                let (host, options) = (host.clone(), scheduled.options.clone());
                Box::pin(async move {
                    let result = host.prune_journals(&options).await;
                    if !result.deleted.is_empty() {
                        tracing::info!(deleted = result.deleted.len(), "pruned journals");
                    }
                    match result.failures.first() {
                        None => Ok(()),
                        Some(failure) => Err(failure.message.clone()),
                    }
                })
            }),
        ));
    }
    if let Some(scheduled) = config.retain.clone() {
        let host = host.clone();
        running.push(job(
            "retain",
            scheduled.every,
            Box::new(move || {
                let (host, options) = (host.clone(), scheduled.options.clone());
                Box::pin(async move {
                    let result = host.retain(&options).await;
                    if result.events + result.sessions > 0 {
                        tracing::info!(
                            events = result.events,
                            logs = result.logs,
                            sessions = result.sessions,
                            "aged out"
                        );
                    }
                    result.error.map_or(Ok(()), Err)
                })
            }),
        ));
    }
    if let Some(scheduled) = config.sessions.clone() {
        let host = host.clone();
        running.push(job(
            "sessions",
            scheduled.every,
            Box::new(move || Box::pin(super::sessions::look_after(host.clone(), scheduled.options.clone()))),
        ));
    }
    if let Some(scheduled) = config.workspaces.clone() {
        let host = host.clone();
        running.push(job(
            "workspaces",
            scheduled.every,
            Box::new(move || {
                Box::pin(super::sessions::collect_workspaces(host.clone(), scheduled.options.clone()))
            }),
        ));
    }
    let mut tasks = tokio::task::JoinSet::new();
    for job in running {
        tasks.spawn(job);
    }
    while tasks.join_next().await.is_some() {}
}

fn seen(host: &Host) -> HostSeen {
    HostSeen {
        owner: host.owner().clone(),
        machine: host.machine().map(str::to_owned),
        version: concat!("serve ", env!("CARGO_PKG_VERSION")).to_owned(),
        since: 0,
    }
}

/// Says that this host is not alive any more. Best effort: what it has said before runs out.
pub(crate) async fn withdraw(host: &Host) {
    if let Err(error) = host.store().announce(&seen(host), Duration::ZERO).await {
        tracing::debug!(%error, "that this server ends could not be said");
    }
}

/// Work that can be begun again and again.
type Work = Box<dyn Fn() -> std::pin::Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send>;

fn every_boxed(
    app: &App,
    name: &'static str,
    interval: Duration,
    work: Work,
) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
    let (ports, jobs) = (app.host.ports().clone(), app.jobs.clone());
    Box::pin(async move { every(ports, jobs, name, interval, work).await })
}
