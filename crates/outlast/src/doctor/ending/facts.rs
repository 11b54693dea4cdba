//! Asking the store and the sandboxes.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::Tenant;
use outlast_core::run::Status;
use outlast_runtime::Orphan;
use outlast_store::{ListRuns, Ports, Store, StoreError, StoreStats};

use super::super::directory::DirectoryFacts;
use crate::local::open_store;
use crate::{Local, LocalOptions, StoreChoice};

const PAGE: usize = 500;

/// How long all of it may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// What is known of runs, sandboxes and servers. Times in milliseconds.
#[derive(Debug)]
pub struct Facts {
    /// How far the store's clock is ahead of this machine's.
    pub ahead: i64,
    /// By how much that may be wrong, since the question took a while.
    pub unsure: u64,
    /// The machine of every server that says it is alive.
    pub hosts: Vec<Option<String>>,
    /// This machine; none where it has no sandboxes yet.
    pub here: Option<String>,
    pub stats: StoreStats,
    /// By how much each run is past its time that a sweep would stop for that.
    pub late: Vec<u64>,
    /// None where this machine has no sandboxes yet.
    pub orphans: Option<Result<Vec<Orphan>, String>>,
}

impl Facts {
    /// None where there is no store yet. Makes nothing.
    pub async fn gather(
        choice: &StoreChoice,
        directory: &DirectoryFacts,
        grace: Duration,
        ports: &Ports,
    ) -> Option<Result<Facts, String>> {
        let here = directory.exists() && directory.hindrance().is_none();
        if *choice == StoreChoice::Embedded && !here {
            return None;
        }
        let asked = async {
            match here && directory.path.join("sandboxes").is_dir() {
                true => with_sandboxes(choice, directory, grace, ports).await,
                false => without(choice, directory, ports).await,
            }
        };
        Some(tokio::select! {
            biased;
            facts = asked => facts,
            () = ports.clock.sleep(PATIENCE) => {
                Err(format!("the store does not answer within {} s", PATIENCE.as_secs()))
            }
        })
    }
}

async fn with_sandboxes(
    choice: &StoreChoice,
    directory: &DirectoryFacts,
    grace: Duration,
    ports: &Ports,
) -> Result<Facts, String> {
    let mut options = LocalOptions::new(&directory.path);
    options.store = quiet(choice);
    options.ports = ports.clone();
    let local = Local::open(options).await.map_err(|error| error.to_string())?;
    let facts = of_store(&**local.host().store(), ports).await;
    let orphans = local.host().orphans(grace, false).await;
    let here = local.host().machine().map(str::to_owned);
    local.close().await;
    Ok(Facts { here, orphans: Some(orphans), ..facts.map_err(|error| error.to_string())? })
}

async fn without(choice: &StoreChoice, directory: &DirectoryFacts, ports: &Ports) -> Result<Facts, String> {
    let owner = ports.entropy.owner_id();
    let store: Arc<dyn Store> =
        open_store(&quiet(choice), &directory.path, owner, ports).await.map_err(|error| error.to_string())?;
    let facts = of_store(&*store, ports).await;
    store.close().await;
    facts.map_err(|error| error.to_string())
}

/// A store that nobody has to be told of anything.
fn quiet(choice: &StoreChoice) -> StoreChoice {
    match choice.clone() {
        StoreChoice::Embedded => StoreChoice::Embedded,
        #[cfg(feature = "postgres")]
        StoreChoice::Postgres { url, .. } => StoreChoice::Postgres { url, notifications: false },
    }
}

async fn of_store(store: &dyn Store, ports: &Ports) -> Result<Facts, StoreError> {
    // The first question may have to connect; that is not the clock's fault.
    let stats = store.stats().await?;
    let before = ports.clock.wall_ms();
    let now = store.now().await?;
    let after = ports.clock.wall_ms();
    let middle = before + after.saturating_sub(before) / 2;
    let hosts = store.hosts().await?.into_iter();
    // A machine that `outlast reap` sweeps has no server for that.
    let hosts = hosts.filter(|seen| seen.version.starts_with("serve ")).map(|seen| seen.machine).collect();
    let late = if stats.overdue > 0 { late(store, now).await? } else { Vec::new() };
    Ok(Facts {
        ahead: now.cast_signed() - middle.cast_signed(),
        unsure: after.saturating_sub(before).div_ceil(2),
        hosts,
        here: None,
        stats,
        late,
        orphans: None,
    })
}

/// By how much each run is past its time. The store's count has those that wait for a person as well.
async fn late(store: &dyn Store, now: u64) -> Result<Vec<u64>, StoreError> {
    let mut query = ListRuns {
        tenant: Tenant::default(),
        statuses: vec![Status::Running],
        detached: true,
        limit: PAGE,
        ..ListRuns::default()
    };
    let mut late = Vec::new();
    loop {
        let page = store.list_runs(&query).await?;
        for run in &page {
            if let (Some(since), Some(ttl)) = (run.detached_since, run.detached_ttl) {
                late.extend(now.saturating_sub(since).checked_sub(ttl));
            }
        }
        query.after = page.last().map(|run| (run.started_at, run.run_id.clone()));
        if page.len() < PAGE {
            return Ok(late);
        }
    }
}
