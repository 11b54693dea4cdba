//! Durable appends, beside what the machine's disk can do.

use std::sync::Arc;
use std::time::Duration;

use outlast::core::event::{Event, Origin};
use outlast::core::run::{ClaimToken, OnDisconnect};
use outlast::core::{OwnerId, Seq, Tenant};
use outlast::store::{Accept, Accepted, Append, Entropy, NewEvent, Store, SystemEntropy};
use outlast::{Local, LocalOptions, Start};

use crate::machine::{Place, fdatasync_rate};
use crate::report::figure;

pub fn appends() {
    let place = Place::new();
    figure("the machine: fdatasync of 512 bytes", fdatasync_rate(place.path()), "/s", "");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    for (runs, group, rounds, aim) in
        [(1, 1, 4000, ""), (1, 8, 2000, ""), (64, 1, 600, ">= 20000 events/s"), (64, 8, 200, "")]
    {
        let place = Place::new();
        let events = runtime.block_on(measure(&place, runs, group, rounds));
        let name = format!("durable appends: {runs} runs, {group} events each: events");
        figure(&name, events, "/s", aim);
    }
}

/// Events per second of so many runs at once, each waiting for its append before the next.
async fn measure(place: &Place, runs: u32, group: u64, rounds: u64) -> f64 {
    let local = Local::open(LocalOptions::new(place.data_dir())).await.expect("open");
    let store = Arc::clone(local.host().store());
    let mut tokens = Vec::new();
    for n in 0..runs {
        tokens.push(accept(&*store, local.owner(), n).await);
    }
    let local_set = tokio::task::LocalSet::new();
    let tasks: Vec<_> = tokens
        .into_iter()
        .map(|token| {
            let store = Arc::clone(&store);
            local_set.spawn_local(async move {
                for round in 0..rounds {
                    let append = append(&token, 1 + round * group, group);
                    store.append(append).await.expect("append");
                }
            })
        })
        .collect();
    #[allow(clippy::disallowed_methods, reason = "a measurement of real time")]
    let began = std::time::Instant::now();
    local_set
        .run_until(async {
            for task in tasks {
                task.await.expect("task");
            }
        })
        .await;
    let took = began.elapsed();
    local.close().await;
    (u64::from(runs) * rounds * group) as f64 / took.as_secs_f64()
}

/// A run of this owner, and the claim to write to it.
pub async fn accept(store: &dyn Store, owner: &OwnerId, n: u32) -> ClaimToken {
    let start = Start::command(
        format!("run-{n}").parse().expect("id"),
        format!("thread-{n}").parse().expect("id"),
        ["true"],
    );
    let accept = Accept {
        tenant: Tenant::default(),
        run_id: start.run_id,
        thread_id: start.thread_id,
        thread_chosen: true,
        spec: start.spec,
        digest: String::new(),
        owner: owner.clone(),
        nonce: SystemEntropy.nonce(),
        lease: Duration::from_secs(600),
        detached_ttl: None,
        on_disconnect: OnDisconnect::Detach,
        messages: Vec::new(),
        barrier: None,
        events: vec![Event::Custom { name: "run.accepted".into(), value: serde_json::json!({}) }.chunk()],
    };
    match store.accept(accept).await.expect("accept") {
        Accepted::New(claimed) => claimed.token,
        Accepted::Existing(_) => unreachable!("a fresh store"),
    }
}

/// The next so many events.
pub fn append(token: &ClaimToken, tail: u64, group: u64) -> Append {
    let events = (0..group).map(|n| {
        let event = Event::TextMessageContent {
            message_id: "run-0".into(),
            delta: "a line of text as programs print it while they work on something, eighty bytes\n".into(),
        };
        NewEvent::new(Origin::Journal { byte: tail * 80, index: n as u32 }, event.chunk())
    });
    Append {
        token: token.clone(),
        expected_tail: Seq(tail),
        batch: SystemEntropy.nonce(),
        events: events.collect(),
        cursor: None,
        messages: Vec::new(),
        barrier: None,
        agent_session: None,
    }
}
