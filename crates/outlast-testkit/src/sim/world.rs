//! The simulated world, and what goes wrong in it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast_core::run::{CancelReason, LaunchSpec, Lifecycle, OnDisconnect, Reuse, SandboxSpec};
use outlast_core::{RunId, Tenant, ThreadId};
use outlast_runtime::Start;
use outlast_store::{MemoryStore, Ports};

use super::agent::Script;
use super::check;
use super::clock::{HostClock, Time};
use super::gate::Life;
use super::history::History;
use super::hosts::SimHost;
use super::plan::Plan;
use super::sandboxes::Sandboxes;
use super::viewer::{Viewed, timeout, view};
use crate::dice::Dice;

/// What a simulation has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What happened, in order. The same for the same seed.
    pub history: Vec<String>,
    /// Promises that were broken.
    pub broken: Vec<String>,
    /// How many runs ended with each status.
    pub ends: BTreeMap<String, usize>,
}

/// Everything that hosts share.
#[derive(Debug)]
pub(super) struct World {
    pub plan: Plan,
    pub time: Time,
    pub dice: Dice,
    pub history: History,
    pub store: MemoryStore,
    pub store_ports: Ports,
    pub sandboxes: Arc<Sandboxes>,
    /// Whether store and sandboxes misbehave.
    pub trouble: Arc<AtomicBool>,
    /// Whose runs new hosts handle.
    pub tenant: Tenant,
    /// Runs that the store cannot look up.
    pub broken_lookups: Arc<Mutex<BTreeSet<RunId>>>,
    hosts: Mutex<Vec<Arc<SimHost>>>,
    /// Runs whose cancel was recorded by a person.
    pub cancelled: Mutex<BTreeSet<RunId>>,
    /// Runs whose shim was killed.
    pub lost: Mutex<BTreeSet<RunId>>,
}

/// Simulates one world. Takes a moment of real time for minutes of simulated time.
pub fn simulate(seed: u64, plan: &Plan) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap_or_else(|error| unreachable!("a runtime without I/O: {error}"));
    runtime.block_on(Box::pin(live(seed, plan.clone())))
}

async fn live(seed: u64, plan: Plan) -> Outcome {
    let world = Arc::new(World::new(seed, plan));
    for n in 0..world.plan.hosts {
        world.add_host(format!("h{n}"));
    }
    let mut views = Vec::new();
    let mut tasks = Vec::new();
    for n in 0..world.plan.runs {
        let run_id = RunId::new(format!("run-{n}")).unwrap_or_else(|_| unreachable!("a plain id"));
        let script = Script {
            lines: world.dice.between(0, 60),
            every: world.dice.between(1, 2500),
            exit: if world.dice.permille(250) { 3 } else { 0 },
            stubborn: world.dice.permille(300),
        };
        world.history.note(format!("client wants {run_id} {script:?}"));
        world.sandboxes.script(&run_id, script);
        tasks.push(tokio::spawn(start(Arc::clone(&world), run_id.clone())));
        for _ in 0..world.plan.viewers {
            let viewed = Arc::<Mutex<Viewed>>::default();
            tasks.push(tokio::spawn(view(Arc::clone(&world), run_id.clone(), Arc::clone(&viewed))));
            views.push((run_id.clone(), viewed));
        }
    }
    trouble(&world).await;
    world.trouble.store(false, Ordering::Relaxed);
    world.history.note("calm");
    world.thaw();
    if world.any_host().is_none() {
        world.add_host("last".to_owned());
    }
    let broken = check::settle_and_check(&world, &views).await;
    tasks.iter().for_each(|task| task.abort());
    let ends = check::ends(&world).await;
    Outcome { history: world.history.take(), broken, ends }
}

impl World {
    /// A world without hosts, in which things go wrong as its plan says.
    pub fn new(seed: u64, plan: Plan) -> World {
        let time = Time::begin();
        let dice = Dice::new(seed);
        let history = History::new(time);
        let store_ports = Ports { clock: HostClock::of_the_store(time), entropy: Arc::new(dice.fork()) };
        World {
            store: MemoryStore::new(store_ports.clone()),
            store_ports,
            sandboxes: Sandboxes::new(time, history.clone()),
            trouble: Arc::new(AtomicBool::new(true)),
            tenant: Tenant::default(),
            broken_lookups: Arc::default(),
            hosts: Mutex::default(),
            cancelled: Mutex::default(),
            lost: Mutex::default(),
            plan,
            time,
            dice,
            history,
        }
    }

    fn hosts(&self) -> std::sync::MutexGuard<'_, Vec<Arc<SimHost>>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_host(&self, name: String) {
        self.history.note(format!("{name} begins"));
        let host = SimHost::new(self, name);
        self.hosts().push(host);
    }

    /// A host that runs at the moment.
    pub fn any_host(&self) -> Option<Arc<SimHost>> {
        let running: Vec<Arc<SimHost>> =
            self.hosts().iter().filter(|host| host.is_running()).cloned().collect();
        running.get(self.dice.pick(running.len())).cloned()
    }

    fn thaw(&self) {
        self.hosts().iter().for_each(|host| host.gate.set(Life::Running));
    }
}

/// Whether the sandbox of the run is kept, so that its journal can be looked at in the end. The others go with their run.
pub(super) fn kept(run_id: &RunId) -> bool {
    run_id.as_str().ends_with(['0', '2', '4', '6', '8'])
}

/// A client that wants a run: it asks again, of any host, until it has an answer.
async fn start(world: Arc<World>, run_id: RunId) {
    // Nobody in this world says that somebody watches.
    let ttl = world.dice.permille(400).then(|| world.dice.between(1, 90));
    world.time.sleep(Duration::from_millis(world.dice.between(0, 60_000))).await;
    loop {
        if let Some(host) = world.any_host() {
            let lifecycle = if kept(&run_id) {
                Lifecycle { reuse: Reuse::Thread, keep_alive: None }
            } else {
                Lifecycle { reuse: Reuse::None, keep_alive: None }
            };
            let sandbox =
                SandboxSpec { provider: "simulated".to_owned(), lifecycle, ..SandboxSpec::default() };
            let thread = format!("thread-{run_id}");
            let start = Start {
                run_id: run_id.clone(),
                thread_id: ThreadId::new(thread).unwrap_or_else(|_| unreachable!("a plain id")),
                thread_chosen: true,
                spec: LaunchSpec::command(vec!["agent".to_owned()], sandbox),
                detached_ttl: ttl.map(Duration::from_secs),
                on_disconnect: OnDisconnect::Detach,
                messages: None,
                request: None,
            };
            // As the server does: a client that goes away takes the request with it, not the driver.
            let starting = tokio::spawn({
                let host = Arc::clone(&host);
                async move { host.host.start(start).await.map(|started| host.keep(started)) }
            });
            match timeout(&world, starting).await {
                Ok(Ok(Ok(_))) => return,
                Ok(Ok(Err(error))) => world.history.note(format!("client {run_id}: {error}")),
                Ok(Err(_)) | Err(()) => world.history.note(format!("client {run_id}: no answer")),
            }
        }
        world.time.sleep(Duration::from_millis(world.dice.between(100, 2000))).await;
    }
}

/// Somebody presses Stop, until it is recorded.
async fn stop(world: Arc<World>, run_id: RunId) {
    loop {
        if let Some(host) = world.any_host() {
            let cancelling = tokio::spawn({
                let (host, run_id) = (Arc::clone(&host), run_id.clone());
                async move { host.host.cancel(&run_id, CancelReason::User, Duration::from_secs(30)).await }
            });
            match timeout(&world, cancelling).await {
                Ok(Ok(Ok(report))) => {
                    if !report.was_over {
                        world.cancelled.lock().unwrap_or_else(PoisonError::into_inner).insert(run_id.clone());
                    }
                    return;
                }
                Ok(Ok(Err(outlast_runtime::CancelError::NotFound(_)))) => return,
                _ => {}
            }
        }
        world.time.sleep(Duration::from_millis(500)).await;
    }
}

/// The adversary.
async fn trouble(world: &Arc<World>) {
    let end = outlast_core::duration::millis(world.plan.trouble);
    let mut replaced = 0;
    while world.time.now() < end {
        world.time.sleep(Duration::from_millis(world.dice.between(500, 7000))).await;
        let Some(host) = world.any_host() else { continue };
        match world.dice.between(0, 99) {
            0..25 => {
                world.history.note(format!("{} is killed", host.name));
                host.gate.set(Life::Dead);
                replaced += 1;
                world.add_host(format!("n{replaced}"));
            }
            25..65 => {
                let time = Duration::from_millis(world.dice.between(200, 30_000));
                world.history.note(format!("{} is frozen for {time:?}", host.name));
                host.gate.set(Life::Frozen);
                let world = Arc::clone(world);
                tokio::spawn(async move {
                    world.time.sleep(time).await;
                    world.history.note(format!("{} is thawed", host.name));
                    host.gate.set(Life::Running);
                });
            }
            65..80 => {
                let run_id = world.some_run();
                world.history.note(format!("client stops {run_id}"));
                tokio::spawn(stop(Arc::clone(world), run_id));
            }
            80..86 => {
                let run_id = world.some_run();
                world.lost.lock().unwrap_or_else(PoisonError::into_inner).insert(run_id.clone());
                world.sandboxes.lose(&run_id);
            }
            _ => {}
        }
    }
}

impl World {
    fn some_run(&self) -> RunId {
        let n = self.dice.pick(self.plan.runs);
        RunId::new(format!("run-{n}")).unwrap_or_else(|_| unreachable!("a plain id"))
    }
}
