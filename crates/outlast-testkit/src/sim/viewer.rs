//! A client that follows a run, whatever becomes of the host that it talks to.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast_core::{Offset, RunId, Seq};
use outlast_runtime::Seen;

use super::world::World;

/// How long a client waits for a host that does not answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a viewer has seen, in the order in which it came.
#[derive(Debug, Default)]
pub(super) struct Viewed {
    pub events: Vec<(Seq, String)>,
    pub closed: bool,
}

/// Follows the run until its log is closed.
pub(super) async fn view(world: Arc<World>, run_id: RunId, seen: Arc<Mutex<Viewed>>) {
    let with =
        |work: &mut dyn FnMut(&mut Viewed)| work(&mut seen.lock().unwrap_or_else(PoisonError::into_inner));
    loop {
        world.time.sleep(Duration::from_millis(world.dice.between(50, 1500))).await;
        let Some(host) = world.any_host() else { continue };
        let mut last = Seq::START;
        with(&mut |viewed| last = viewed.events.last().map_or(Seq::START, |(seq, _)| *seq));
        let opened = host.host.view(&run_id, Offset::After(last));
        let Ok(Ok(mut viewer)) = timeout(&world, opened).await else {
            continue;
        };
        // It goes away by itself now and then, as tabs do.
        let until = world.time.now() + world.dice.between(500, 40_000);
        while world.time.now() < until {
            match timeout(&world, viewer.next()).await {
                Ok(Ok(Seen::Events(page))) => {
                    with(&mut |viewed| {
                        viewed.events.extend(page.events.iter().map(|event| (event.seq, event.json.clone())));
                    });
                }
                Ok(Ok(Seen::CaughtUp)) => {
                    if timeout(&world, viewer.wait()).await.is_err() {
                        break;
                    }
                }
                Ok(Ok(Seen::Closed | Seen::Expired)) => {
                    with(&mut |viewed| viewed.closed = true);
                    return;
                }
                Ok(Err(_)) | Err(()) => break,
            }
        }
    }
}

/// What it yields, unless the host does not answer for too long.
pub(super) async fn timeout<T>(world: &World, work: impl Future<Output = T>) -> Result<T, ()> {
    tokio::select! {
        biased;
        value = work => Ok(value),
        () = world.time.sleep(PATIENCE) => Err(()),
    }
}
