//! What it costs that only the holder of the claim can write: an append beside a plain insert of the same bytes.

use std::sync::Arc;

use outlast::core::event::Origin;
use outlast::core::run::ClaimToken;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use super::appends::write;
use super::place::{Schema, connect, host};
use crate::agent::now_ns;
use crate::report::{figure, percentile};
use crate::store::{accept, append};

const CLIENTS: u32 = 32;
const ROUNDS: u64 = 7;

pub fn fence() {
    for (group, appends, aim) in [(1, 300, "<= 2"), (8, 100, "<= 1.3")] {
        let Some(schema) = Schema::new("postgres-fence") else {
            return;
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
        let [mut fenced, mut plain, mut ratio] = runtime.block_on(compare(&schema.url, group, appends));
        let name = format!("{CLIENTS} clients, {group} events each");
        let rate = |seconds: f64| (u64::from(CLIENTS) * appends * group) as f64 / seconds;
        figure(&format!("PostgreSQL, plain inserts: {name}"), rate(percentile(&mut plain, 0.5)), "/s", "");
        figure(&format!("PostgreSQL, fenced appends: {name}"), rate(percentile(&mut fenced, 0.5)), "/s", "");
        let name = format!("PostgreSQL, fenced over plain: {name}: time");
        figure(&name, percentile(&mut ratio, 0.5), "x", aim);
    }
}

/// Seconds of each round of one and of the other, by turns, and their ratios.
async fn compare(url: &str, group: u64, appends: u64) -> [Vec<f64>; 3] {
    // Each client has a connection, here and there.
    let (store, owner) = host(url, |config| config.connections = CLIENTS as usize).await;
    let store = Arc::new(store);
    let mut tokens = Vec::new();
    let mut clients = Vec::new();
    for n in 0..CLIENTS {
        tokens.push(accept(&*store, &owner, n).await);
        clients.push(Arc::new(connect(url).await.expect("connect")));
    }
    clients[0].batch_execute("CREATE TABLE plain (LIKE events INCLUDING ALL)").await.expect("table");
    let mut figures = [Vec::new(), Vec::new(), Vec::new()];
    // The first round warms up.
    for round in 0..=ROUNDS {
        let tail = 1 + round * appends * group;
        let fenced = seconds(write(&store, &tokens, tail, group, appends)).await;
        let plain = seconds(insert(&clients, &tokens, tail, group, appends)).await;
        if round > 0 {
            figures[0].push(fenced);
            figures[1].push(plain);
            figures[2].push(fenced / plain);
        }
    }
    figures
}

async fn seconds(work: impl Future<Output = ()>) -> f64 {
    let start = now_ns();
    work.await;
    (now_ns() - start) as f64 / 1e9
}

/// What [`write`] writes, without a word about claims: each client into its own range of keys, a commit for each group.
async fn insert(clients: &[Arc<Client>], tokens: &[ClaimToken], tail: u64, group: u64, rounds: u64) {
    let tasks: Vec<_> = (0_i64..)
        .zip(clients.iter().zip(tokens))
        .map(|(run, (client, token))| {
            let (client, token) = (Arc::clone(client), token.clone());
            tokio::spawn(async move {
                let one = "INSERT INTO plain (run, seq, at, origin_byte, origin_index, json) \
                           VALUES ($1, $2::bigint + 1, $3, $4, $5, $6)";
                let several = "INSERT INTO plain (run, seq, at, origin_byte, origin_index, json) \
                               SELECT $1, $2 + event.n, $3, event.byte, event.index, event.json \
                               FROM unnest($4::bigint[], $5::integer[], $6::bytea[]) \
                               WITH ORDINALITY AS event (byte, index, json, n)";
                let statement =
                    client.prepare(if group == 1 { one } else { several }).await.expect("prepare");
                for round in 0..rounds {
                    let append = append(&token, tail + round * group, group);
                    let (mut bytes, mut indexes, mut json) = (Vec::new(), Vec::new(), Vec::new());
                    for event in &append.events {
                        if let Origin::Journal { byte, index } = event.origin {
                            bytes.push(byte as i64);
                            indexes.push(index as i32);
                        }
                        json.push(event.chunk.json.as_bytes());
                    }
                    let (tail, at) = (append.expected_tail.0 as i64, (now_ns() / 1_000_000) as i64);
                    let values: [&(dyn ToSql + Sync); 6] = if group == 1 {
                        [&run, &tail, &at, &bytes[0], &indexes[0], &json[0]]
                    } else {
                        [&run, &tail, &at, &bytes, &indexes, &json]
                    };
                    let written = client.execute(&statement, &values).await.expect("insert");
                    assert_eq!(written, group);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("task");
    }
}
