//! A simulated host: the real sessions, with everything around them simulated.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::OwnerId;
use outlast_core::decide::SessionState;
use outlast_core::ledger::StopReason;
use outlast_session::Sessions;
use outlast_session::collect::GcOptions;
use outlast_session::objects::Objects;
use outlast_session::upkeep::UpkeepOptions;
use outlast_store::{Ledger, ListSessions, Log, Ports, SessionHead};

use super::content::OFFLOAD;
use super::objects::SimObjects;
use super::world::World;
use crate::dice::Dice;
use crate::sim::clock::HostClock;
use crate::sim::gate::{Gate, Life};
use crate::sim::plan::Plan;
use crate::sim::store::SimStore;

/// A process that serves.
#[derive(Debug)]
pub(super) struct Member {
    pub name: String,
    pub owner: OwnerId,
    pub gate: Gate,
    pub store: Arc<SimStore>,
    pub sessions: Sessions,
    pub ports: Ports,
    dice: Dice,
}

impl Member {
    pub fn new(world: &World, name: String) -> Arc<Member> {
        let gate = Gate::new();
        let dice = world.dice.fork();
        // Within an hour of the truth, on either side.
        let skew = i64::try_from(dice.between(0, 7_200_000)).unwrap_or(0) - 3_600_000;
        let clock = Arc::new(HostClock { time: world.time, skew, gate: Some(gate.clone()) });
        let ports = Ports { clock, entropy: Arc::new(dice.fork()) };
        let owner = OwnerId::new(name.clone()).unwrap_or_else(|_| unreachable!("a plain name"));
        let plan = &world.plan;
        let store = Arc::new(SimStore {
            name: name.clone(),
            inner: world.store.joined_by(owner.clone(), world.store_ports.clone()),
            time: world.time,
            gate: gate.clone(),
            dice: dice.fork(),
            trouble: Arc::clone(&world.trouble),
            broken_lookups: Arc::default(),
            plan: Plan { fail: plan.fail, lose: plan.lose, delay: plan.delay, ..Plan::default() },
            history: world.history.clone(),
            watch: Some(Arc::clone(&world.watch)),
        });
        let objects = SimObjects {
            name: name.clone(),
            bucket: world.bucket.clone(),
            time: world.time,
            skew: world.objects_skew,
            gate: gate.clone(),
            dice: dice.fork(),
            trouble: Arc::clone(&world.trouble),
            plan: plan.clone(),
            history: world.history.clone(),
            watch: Arc::clone(&world.watch),
        };
        let objects = Objects::of_store("simulated", Arc::new(objects));
        let sessions = Sessions::new(store.clone(), objects, ports.clone(), owner.clone(), &world.deployment)
            .offload_above(OFFLOAD);
        Arc::new(Member { name, owner, gate, store, sessions, ports, dice })
    }

    pub fn is_running(&self) -> bool {
        self.gate.life() == Life::Running
    }

    /// Begins what a server does by itself.
    pub fn begin(self: &Arc<Self>, world: &Arc<World>) {
        tokio::spawn(look_after_all(Arc::clone(self), Arc::clone(world)));
        tokio::spawn(collect_one(Arc::clone(self), Arc::clone(world)));
        tokio::spawn(end_one(Arc::clone(self), Arc::clone(world)));
        tokio::spawn(retain(Arc::clone(self), Arc::clone(world)));
    }

    async fn rest(&self, from: u64, to: u64) {
        self.ports.clock.sleep(Duration::from_millis(self.dice.between(from, to))).await;
    }

    async fn some_session(&self, idle: bool) -> Option<SessionHead> {
        let query = ListSessions {
            states: vec![SessionState::Active],
            idle_for: idle.then_some(Duration::ZERO),
            limit: 100,
            ..ListSessions::default()
        };
        let found = self.store.list_sessions(&query).await.ok()?;
        found.get(self.dice.pick(found.len())).cloned()
    }
}

async fn look_after_all(host: Arc<Member>, world: Arc<World>) {
    while world.in_trouble() {
        host.rest(2000, 20_000).await;
        let thorough = host.dice.permille(300);
        let options = UpkeepOptions { gc: world.gc(), tenant: None, thorough };
        host.sessions.upkeep(&options, &|| true).await;
    }
}

async fn collect_one(host: Arc<Member>, world: Arc<World>) {
    while world.in_trouble() {
        host.rest(500, 6000).await;
        let Some(session) = host.some_session(false).await else { continue };
        match host.sessions.collect(&session, &world.gc(), &|| true).await {
            Ok(result) if result.deleted > 0 => world.deeds("collected", result.deleted),
            Ok(_) => {}
            Err(error) => world.history.note(format!("{} collects: {error}", host.name)),
        }
    }
}

/// Looks after a session, with a collection beside, and ends its activity in the middle of it.
async fn end_one(host: Arc<Member>, world: Arc<World>) {
    while world.in_trouble() {
        host.rest(500, 12_000).await;
        let Some(session) = host.some_session(true).await else { continue };
        let Ok(mut activity) = host.sessions.look_after(session).await else { continue };
        let options: GcOptions = world.gc();
        activity.collect(options).await;
        host.rest(1, 60).await;
        if host.dice.permille(200) {
            activity.join().await;
        }
        if host.dice.permille(200) {
            drop(activity.close(None).await);
            continue;
        }
        match activity.stop(StopReason::Idle, None).await {
            Ok(true) => world.deeds("stopped", 1),
            Ok(false) => {}
            Err(error) => world.history.note(format!("{} stops: {error}", host.name)),
        }
    }
}

/// Events age out, and with them pointers, without a record of it.
async fn retain(host: Arc<Member>, world: Arc<World>) {
    while world.in_trouble() {
        host.rest(5000, 30_000).await;
        if let Ok(swept) = host.store.expire_events(Duration::from_secs(20), 3).await {
            world.deeds("expired", swept.rows);
        }
    }
}
