//! The adversary.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::Tenant;
use outlast_store::SessionName;

use super::world::World;
use crate::sim::gate::Life;

/// Freezes, thaws, kills and replaces hosts, and has sessions deleted.
pub(super) async fn trouble(world: &Arc<World>) {
    let end = outlast_core::duration::millis(world.plan.trouble);
    let mut replaced = 0;
    while world.time.now() < end {
        world.pause(300, 5000).await;
        let Some(host) = world.any_host() else { continue };
        if let Some(session) = world.watch.take_urged() {
            tokio::spawn(delete(Arc::clone(world), SessionName::Id(session)));
        }
        if world.dice.permille(world.plan.delete) {
            let thread = world.thread(world.dice.pick(world.plan.threads));
            let name = match world.dice.permille(500) {
                true => SessionName::Id(world.watch.session_of(&thread)),
                false => SessionName::Thread(thread),
            };
            tokio::spawn(delete(Arc::clone(world), name));
            continue;
        }
        match world.dice.between(0, 99) {
            0..15 => {
                world.history.note(format!("{} is killed", host.name));
                host.gate.set(Life::Dead);
                replaced += 1;
                world.add_host(format!("n{replaced}"));
            }
            15..65 => {
                let longest = if world.dice.permille(300) { 90_000 } else { 8000 };
                let time = Duration::from_millis(world.dice.between(50, longest));
                world.history.note(format!("{} is frozen for {time:?}", host.name));
                host.gate.set(Life::Frozen);
                let world = Arc::clone(world);
                tokio::spawn(async move {
                    world.time.sleep(time).await;
                    world.history.note(format!("{} is thawed", host.name));
                    host.gate.set(Life::Running);
                });
            }
            _ => {}
        }
    }
}

/// Somebody wants a session to be forgotten, and does not look whether it is.
async fn delete(world: Arc<World>, name: SessionName) {
    let Some(host) = world.any_host() else { return };
    match host.sessions.delete(&Tenant::default(), &name, None).await {
        Ok(deleted) => world.history.note(format!("{} deleted the session {name}: {deleted:?}", host.name)),
        Err(error) => world.history.note(format!("{} deletes the session {name}: {error}", host.name)),
    }
}
