//! The simulated world of sessions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use outlast_core::ThreadId;
use outlast_session::collect::GcOptions;
use outlast_store::{MemoryStore, Ports, Store};

use super::bucket::Bucket;
use super::check;
use super::hosts::Member;
use super::plan::SessionsPlan;
use super::watch::Watch;
use super::{runs, trouble, writers};
use crate::dice::Dice;
use crate::sim::clock::{HostClock, Time};
use crate::sim::gate::Life;
use crate::sim::history::History;

/// What a simulation has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionsOutcome {
    /// What happened, in order. The same for the same seed.
    pub history: Vec<String>,
    /// Promises that were broken.
    pub broken: Vec<String>,
    /// How often what was done.
    pub deeds: BTreeMap<String, u64>,
}

/// Everything that hosts share.
#[derive(Debug)]
pub(super) struct World {
    pub plan: SessionsPlan,
    pub time: Time,
    pub dice: Dice,
    pub history: History,
    pub store: MemoryStore,
    pub store_ports: Ports,
    pub deployment: String,
    pub bucket: Bucket,
    /// How far the clock of object storage is from the store's, in milliseconds.
    pub objects_skew: i64,
    pub watch: Arc<Watch>,
    /// Whether store, storage and hosts misbehave.
    pub trouble: Arc<AtomicBool>,
    /// What nobody of this world has put.
    pub foreign: Vec<String>,
    hosts: Mutex<Vec<Arc<Member>>>,
    /// How often each thread was followed by another.
    generations: Mutex<Vec<u32>>,
    deeds: Mutex<BTreeMap<String, u64>>,
}

/// Simulates one world of sessions. Takes a moment of real time for minutes of simulated time.
pub fn simulate_sessions(seed: u64, plan: &SessionsPlan) -> SessionsOutcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap_or_else(|error| unreachable!("a runtime without I/O: {error}"));
    runtime.block_on(Box::pin(live(seed, plan.clone())))
}

async fn live(seed: u64, plan: SessionsPlan) -> SessionsOutcome {
    let world = Arc::new(World::new(seed, plan));
    for n in 0..world.plan.hosts {
        world.add_host(format!("h{n}"));
    }
    let mut clients = Vec::new();
    for n in 0..world.plan.writers {
        clients.push(tokio::spawn(writers::write(Arc::clone(&world), n)));
    }
    for n in 0..world.plan.runs {
        clients.push(tokio::spawn(runs::turn(Arc::clone(&world), n)));
    }
    trouble::trouble(&world).await;
    world.trouble.store(false, Ordering::Relaxed);
    world.history.note("calm");
    world.hosts().iter().for_each(|host| host.gate.set(Life::Running));
    if world.any_host().is_none() {
        world.add_host("last".to_owned());
    }
    check::settle_and_check(&world, clients).await;
    let broken = world.watch.take_broken();
    let deeds = std::mem::take(&mut *world.deeds.lock().unwrap_or_else(PoisonError::into_inner));
    SessionsOutcome { history: world.history.take(), broken, deeds }
}

impl World {
    fn new(seed: u64, plan: SessionsPlan) -> World {
        let time = Time::begin();
        let dice = Dice::new(seed);
        let history = History::new(time);
        let store_ports = Ports { clock: HostClock::of_the_store(time), entropy: Arc::new(dice.fork()) };
        let store = MemoryStore::new(store_ports.clone());
        let deployment = store.deployment_id().now_or_never().and_then(Result::ok).unwrap_or_default();
        let bucket = Bucket::default();
        let watch = Arc::new(Watch::new(store.clone(), deployment.clone(), bucket.clone(), history.clone()));
        let objects_skew = i64::try_from(dice.between(0, 3000)).unwrap_or(0) - 1500;
        let mut world = World {
            trouble: Arc::new(AtomicBool::new(true)),
            foreign: Vec::new(),
            hosts: Mutex::default(),
            generations: Mutex::new(vec![0; plan.threads]),
            deeds: Mutex::default(),
            plan,
            time,
            dice,
            history,
            store,
            store_ports,
            deployment,
            bucket,
            objects_skew,
            watch,
        };
        world.put_foreign();
        world
    }

    /// Objects with names that Outlast does not give, and one with a name that it does, which somebody has left.
    fn put_foreign(&mut self) {
        let blobs = self.watch.session_of(&self.thread(0)).blobs_prefix();
        let digest = "0123456789abcdef".repeat(4);
        let names = [
            format!("{blobs}/{}", digest.to_uppercase()),
            format!("{blobs}/{digest}.tmp"),
            format!("{blobs}/notes/{digest}"),
            format!("elsewhere/{digest}"),
            "sessions/README".to_owned(),
        ];
        self.bucket.put(&format!("{blobs}/{digest}"), Bytes::from_static(b"left behind"), 0);
        for name in names {
            // Now and then there are none, so that also sessions are seen that are collected to the last object.
            if self.dice.permille(500) {
                self.bucket.put(&name, Bytes::from_static(b"foreign"), 0);
                self.foreign.push(name);
            }
        }
    }

    pub fn in_trouble(&self) -> bool {
        self.trouble.load(Ordering::Relaxed)
    }

    pub fn gc(&self) -> GcOptions {
        GcOptions { grace: self.plan.grace, dry_run: false }
    }

    pub fn deeds(&self, what: &str, times: u64) {
        let mut deeds = self.deeds.lock().unwrap_or_else(PoisonError::into_inner);
        *deeds.entry(what.to_owned()).or_default() += times;
    }

    pub async fn pause(&self, from: u64, to: u64) {
        self.time.sleep(Duration::from_millis(self.dice.between(from, to))).await;
    }

    /// What it yields, unless that takes too long.
    pub async fn within<T>(&self, patience: Duration, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            value = work => Some(value),
            () = self.time.sleep(patience) => None,
        }
    }

    fn generations(&self) -> MutexGuard<'_, Vec<u32>> {
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread that is used in this place now.
    pub fn thread(&self, place: usize) -> ThreadId {
        let name = format!("thread-{place}-{}", self.generations()[place]);
        ThreadId::new(name).unwrap_or_else(|_| unreachable!("a plain id"))
    }

    /// This one was deleted: another takes its place.
    pub fn next_thread(&self, place: usize, deleted: &ThreadId) {
        if self.thread(place) == *deleted {
            self.generations()[place] += 1;
        }
    }

    pub fn hosts(&self) -> MutexGuard<'_, Vec<Arc<Member>>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add_host(self: &Arc<Self>, name: String) {
        self.history.note(format!("{name} begins"));
        let host = Member::new(self, name);
        host.begin(self);
        self.hosts().push(host);
    }

    /// A host that runs at the moment.
    pub fn any_host(&self) -> Option<Arc<Member>> {
        let running: Vec<Arc<Member>> =
            self.hosts().iter().filter(|host| host.is_running()).cloned().collect();
        running.get(self.dice.pick(running.len())).cloned()
    }
}
