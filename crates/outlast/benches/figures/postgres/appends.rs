//! Durable appends of runs that are spread over two hosts.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use outlast::core::run::ClaimToken;
use outlast::postgres::PostgresStore;
use outlast::store::Log;

use super::place::{Schema, host};
use crate::machine::{Place, fdatasync_rate, timed};
use crate::report::{figure, percentile};
use crate::store::{accept, append};

pub fn appends() {
    if Schema::new("postgres-appends").is_none() {
        return;
    }
    figure("the machine: fdatasync of 512 bytes", fdatasync_rate(Place::new().path()), "/s", "");
    for (runs, group, rounds) in
        [(1, 1, 3000), (1, 8, 2000), (64, 1, 300), (64, 8, 100), (512, 1, 40), (512, 8, 15)]
    {
        let mut rates: Vec<f64> = (0..3).filter_map(|_| measure(runs, group, rounds)).collect();
        let name = format!("PostgreSQL, appends: {runs} runs, {group} events each: events");
        // One run alone is bound by its round trips.
        let aim = if runs > 1 { ">= 10000 events/s" } else { "" };
        figure(&name, percentile(&mut rates, 0.5), "/s", aim);
    }
}

/// Events per second of so many runs at once, each waiting for its append before the next. A host is a thread.
fn measure(runs: u32, group: u64, rounds: u64) -> Option<f64> {
    let schema = Schema::new("postgres-appends")?;
    let hosts = runs.min(2);
    let ready = Barrier::new(hosts as usize + 1);
    let took: Duration = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..hosts)
            .map(|host| {
                let (schema, ready) = (&schema.url, &ready);
                let mine: Vec<u32> = (0..runs).filter(|run| run % hosts == host).collect();
                scope.spawn(move || one_host(schema, &mine, group, rounds, ready))
            })
            .collect();
        ready.wait();
        timed(|| threads.into_iter().for_each(|thread| thread.join().expect("host"))).1
    });
    Some((u64::from(runs) * rounds * group) as f64 / took.as_secs_f64())
}

fn one_host(url: &str, runs: &[u32], group: u64, rounds: u64, ready: &Barrier) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    runtime.block_on(async {
        let (store, owner) = host(url, |_| {}).await;
        let store = Arc::new(store);
        let mut tokens = Vec::new();
        for run in runs {
            tokens.push(accept(&*store, &owner, *run).await);
        }
        // The connections are made, and know the statement.
        write(&store, &tokens, 1, group, 3).await;
        ready.wait();
        write(&store, &tokens, 1 + 3 * group, group, rounds).await;
    });
}

/// Each run at once, one append after the other.
pub async fn write(store: &Arc<PostgresStore>, tokens: &[ClaimToken], tail: u64, group: u64, rounds: u64) {
    let tasks: Vec<_> = tokens
        .iter()
        .cloned()
        .map(|token| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                for round in 0..rounds {
                    store.append(append(&token, tail + round * group, group)).await.expect("append");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("task");
    }
}
