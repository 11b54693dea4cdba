//! A simulated host: the real runtime, with everything around it simulated.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast_core::run::{RunRecord, Status};
use outlast_core::{OwnerId, RunId};
use outlast_runtime::{
    CheckpointWhen, Environment, Host, HostConfig, Keeper, Notices, Options, PruneOptions, ReapOptions,
    ReapOutcome, Started, WorkspaceOptions,
};
use outlast_session::objects::Objects;
use outlast_store::{ListRuns, Ports};
use tokio::task::JoinHandle;

use super::clock::HostClock;
use super::gate::{Gate, Life};
use super::history::History;
use super::provider::SimProvider;
use super::store::SimStore;
use super::world::World;

/// A process that serves.
#[derive(Debug)]
pub(super) struct SimHost {
    pub name: String,
    pub gate: Gate,
    pub host: Host,
    kept: Arc<Mutex<BTreeMap<RunId, Keeper>>>,
    adopter: JoinHandle<()>,
    sweeper: JoinHandle<()>,
    pruner: JoinHandle<()>,
}

impl Drop for SimHost {
    fn drop(&mut self) {
        self.adopter.abort();
        self.sweeper.abort();
        self.pruner.abort();
    }
}

impl SimHost {
    pub fn new(world: &World, name: String) -> Arc<SimHost> {
        let gate = Gate::new();
        let dice = world.dice.fork();
        // Within an hour of the truth, on either side.
        let skew = i64::try_from(dice.between(0, 7_200_000)).unwrap_or(0) - 3_600_000;
        let clock = Arc::new(HostClock { time: world.time, skew, gate: Some(gate.clone()) });
        let ports = Ports { clock, entropy: Arc::new(dice.fork()) };
        let owner = OwnerId::new(name.clone()).unwrap_or_else(|_| unreachable!("a plain name"));
        let store = SimStore {
            name: name.clone(),
            inner: world.store.joined_by(owner.clone(), world.store_ports.clone()),
            time: world.time,
            gate: gate.clone(),
            dice: dice.fork(),
            trouble: Arc::clone(&world.trouble),
            broken_lookups: Arc::clone(&world.broken_lookups),
            plan: world.plan.clone(),
            history: world.history.clone(),
            watch: None,
        };
        let provider = SimProvider {
            world: Arc::clone(&world.sandboxes),
            gate: gate.clone(),
            dice: dice.fork(),
            trouble: Arc::clone(&world.trouble),
            plan: world.plan.clone(),
        };
        let history = world.history.clone();
        let who = name.clone();
        let host = Host::new(HostConfig {
            owner,
            store: Arc::new(store),
            provider: Arc::new(provider),
            objects: Objects::in_memory(),
            agents: outlast_agents::agent,
            ports,
            environment: Environment::of([]),
            tenant: world.tenant.clone(),
            options: Options {
                lease: world.plan.lease,
                // Simulated sandboxes have no directories.
                workspace: WorkspaceOptions {
                    checkpoint: CheckpointWhen::Manual,
                    ..WorkspaceOptions::default()
                },
                ..Options::default()
            },
            notices: Notices::new(move |notice| history.note(format!("{who} {notice:?}"))),
        });
        let kept = Arc::<Mutex<BTreeMap<RunId, Keeper>>>::default();
        let adopter = tokio::spawn(adopt(host.clone(), Arc::clone(&kept), gate.clone()));
        let sweeper = tokio::spawn(sweep(host.clone(), gate.clone(), world.history.clone(), name.clone()));
        let pruner = tokio::spawn(prune(host.clone(), gate.clone()));
        Arc::new(SimHost { name, gate, host, kept, adopter, sweeper, pruner })
    }

    pub fn is_running(&self) -> bool {
        self.gate.life() == Life::Running
    }

    /// Keeps a run that was just started here.
    pub fn keep(&self, started: Started) -> RunRecord {
        let run = started.run.clone();
        let keeper = self.host.keep(started);
        // A keeper that waits for the claim of this very start gives way to it.
        let before = self.kept().insert(run.run_id.clone(), keeper);
        drop(before);
        run
    }

    /// From now on it ends and deletes nothing by itself.
    #[cfg(test)]
    pub fn stop_jobs(&self) {
        self.sweeper.abort();
        self.pruner.abort();
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, BTreeMap<RunId, Keeper>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a server does: brings runs that nobody watches to their end, and destroys their sandboxes.
async fn sweep(host: Host, gate: Gate, history: History, name: String) {
    let options = ReapOptions {
        max_runs: 3,
        run_budget: Duration::from_secs(15),
        time_limit: Some(Duration::from_secs(60)),
        ..ReapOptions::default()
    };
    loop {
        host.ports().clock.sleep(Duration::from_secs(7)).await;
        gate.pass().await;
        let swept = host.reap_detached_runs(&options).await;
        for run in swept.runs.iter().filter(|run| run.outcome != ReapOutcome::Producing) {
            history.note(format!("{name} reaped {} {}", run.run_id, run.outcome.as_str()));
        }
        gate.pass().await;
        for sandbox in host.reclaim_due().await.sandboxes {
            history.note(format!("{name} reclaimed {} {:?}", sandbox.instance_id, sandbox.outcome));
        }
        gate.pass().await;
        for orphan in host.orphans(Duration::from_secs(30), true).await.unwrap_or_default() {
            history.note(format!("{name} orphan {} {:?}", orphan.instance_id, orphan.state));
        }
    }
}

/// What a server does: sees to it that every run is driven.
async fn adopt(host: Host, kept: Arc<Mutex<BTreeMap<RunId, Keeper>>>, gate: Gate) {
    loop {
        host.ports().clock.sleep(Duration::from_secs(2)).await;
        gate.pass().await;
        kept.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, keeper| !keeper.has_ended());
        let query = ListRuns { statuses: vec![Status::Running], limit: 100, ..ListRuns::default() };
        let Ok(runs) = host.store().list_runs(&query).await else {
            continue;
        };
        for run in runs.iter().filter(|run| run.driver.is_none()) {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.entry(run.run_id.clone()).or_insert_with(|| host.keep_run(&run.run_id));
        }
    }
}

/// Another thing that a server does: deletes the journals of runs that have ended, as soon as it may, so that whatever
/// is frozen meanwhile thaws to find none.
async fn prune(host: Host, gate: Gate) {
    loop {
        host.ports().clock.sleep(Duration::from_secs(17)).await;
        gate.pass().await;
        host.prune_journals(&PruneOptions { max_deletes: 2, ..PruneOptions::default() }).await;
    }
}
