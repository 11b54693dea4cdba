//! Clients that add records, each again until it is known what became of them.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::decide::RecordsRefusal;
use outlast_core::{RunId, Tenant};
use outlast_session::AddError;
use outlast_store::{AppendRecords, NewRecord, RecordsError};

use super::content;
use super::world::World;

/// Adds records to a thread, and to the one after it where it was deleted.
pub(super) async fn write(world: Arc<World>, n: usize) {
    let run = RunId::new(format!("writer-{n}")).unwrap_or_else(|_| unreachable!("a plain id"));
    let mut ordinal = 0;
    for _ in 0..world.plan.appends {
        world.pause(100, 12_000).await;
        let records: Vec<NewRecord> = (0..world.dice.between(1, 3))
            .map(|_| {
                ordinal += 1;
                match world.dice.between(0, 9) {
                    0 => content::checkpoint_record(&run, ordinal as u64),
                    _ => content::message_record(&run, ordinal),
                }
            })
            .collect();
        while !add(&world, n, &records).await {}
    }
}

/// Whether it is done; false: the thread was deleted.
async fn add(world: &Arc<World>, n: usize, records: &[NewRecord]) -> bool {
    let place = n % world.plan.threads;
    let append = AppendRecords {
        tenant: Tenant::default(),
        thread_id: world.thread(place),
        expected_tip: None,
        barrier: None,
        lease: None,
        pin: None,
        create: true,
        records: records.to_vec(),
    };
    loop {
        if let Some(host) = world.any_host() {
            // A client that goes away does not take with it what the host does.
            let adding = tokio::spawn({
                let append = append.clone();
                async move { host.sessions.append(append).await }
            });
            let patience = Duration::from_millis(world.dice.between(500, 20_000));
            match world.within(patience, adding).await {
                Some(Ok(Ok(done))) => {
                    world.watch.acknowledged(&append, &done);
                    world.deeds("acknowledged", done.len() as u64);
                    return true;
                }
                Some(Ok(Err(AddError::Records(RecordsError::Refused(refusal))))) => match refusal {
                    RecordsRefusal::SessionDeleted(_) => {
                        world.next_thread(place, &append.thread_id);
                        return false;
                    }
                    // Collections have begun again and again.
                    RecordsRefusal::BarrierMoved { .. } | RecordsRefusal::Condemned { .. } => {
                        world.deeds("gave way", 1);
                    }
                    other => world.watch.say(format!("an append is refused: {other}")),
                },
                Some(Ok(Err(error))) => world.history.note(format!("writer {n}: {error}")),
                Some(Err(error)) => world.watch.say(format!("an append panics: {error}")),
                None => world.history.note(format!("writer {n}: no answer")),
            }
        }
        world.pause(50, 15_000).await;
    }
}
