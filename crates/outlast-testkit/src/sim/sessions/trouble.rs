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
        if world.dice.permille(world.plan.delete) {
            tokio::spawn(delete(Arc::clone(world)));
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

/// Somebody wants a thread to be forgotten, and does not look whether it is.
async fn delete(world: Arc<World>) {
    let thread = world.thread(world.dice.pick(world.plan.threads));
    let Some(host) = world.any_host() else { return };
    let name = match world.dice.permille(500) {
        true => SessionName::Thread(thread.clone()),
        false => SessionName::Id(world.watch.session_of(&thread)),
    };
    match host.sessions.delete(&Tenant::default(), &name, None).await {
        Ok(deleted) => {
            world.history.note(format!("{} deleted {thread}: {deleted:?}", host.name));
        }
        Err(error) => world.history.note(format!("{} deletes {thread}: {error}", host.name)),
    }
}
