//! Measures what the embedded store does on this disk, beside the disk's own rate of syncs in the same run:
//! `cargo run --release -p outlast-sqlite --example appends [DIRECTORY] [SECONDS]`.

#![allow(clippy::disallowed_methods, reason = "a measurement needs the real clock")]
#![allow(clippy::unwrap_used, reason = "a measurement that fails has nothing to report")]

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_core::event::{Chunk, EventKind, Origin};
use outlast_core::run::{ClaimToken, Cursor, LaunchSpec, OnDisconnect, SandboxSpec};
use outlast_core::{OwnerId, RunId, Seq, Tenant, ThreadId};
use outlast_sqlite::{SqliteConfig, SqliteStore};
use outlast_store::{Accept, Accepted, Append, Entropy, Log, NewEvent, Ports, Runs, Store, SystemEntropy};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let parent = arguments.next().unwrap_or_else(|| std::env::temp_dir().display().to_string());
    let time = Duration::from_secs_f64(arguments.next().map_or(2.0, |text| text.parse().unwrap()));
    let dir = Path::new(&parent).join(format!("outlast-appends-{}", std::process::id()));
    std::fs::create_dir(&dir).unwrap();

    println!("fdatasync of 4 KiB overwritten      {:>10.0} /s", syncs(&dir, time));
    let owner = SystemEntropy.owner_id();
    let config = SqliteConfig::new(dir.join("data"), owner.clone(), Ports::system());
    let store = Arc::new(SqliteStore::open(config).unwrap());
    let bench = Bench { store: store.clone(), owner };
    for (name, runs, group) in [
        ("1 run, 1 event", 1, 1),
        ("64 runs, 1 event", 64, 1),
        ("64 runs, 8 events", 64, 8),
        ("1 run, 8 events", 1, 8),
    ] {
        let (appends, p50, p99) = bench.appends(name, runs, group, time).await;
        println!(
            "appends, {name:<19}        {appends:>10.0} /s  {:>10.0} events/s  p50 {p50:?} p99 {p99:?}",
            appends * group as f64
        );
    }
    for size in [150, 250, 300, 1_000_000] {
        let (rate, events) = bench.replay(size).await;
        println!("replay of events of {size:>7} bytes   {rate:>10.0} MB/s {events:>10.0} events/s");
    }
    println!("fdatasync of 4 KiB overwritten      {:>10.0} /s", syncs(&dir, time));
    store.close().await;
    std::fs::remove_dir_all(&dir).unwrap();
}

/// The disk's own rate, as a write-ahead log that is overwritten from the start uses it.
fn syncs(dir: &Path, time: Duration) -> f64 {
    let file = OpenOptions::new().create(true).truncate(true).write(true).open(dir.join("syncs")).unwrap();
    let block = [7; 4096];
    for at in 0..256 {
        file.write_all_at(&block, at * 4096).unwrap();
    }
    file.sync_all().unwrap();
    let start = Instant::now();
    let mut count = 0;
    while start.elapsed() < time {
        file.write_all_at(&block, (count % 256) * 4096).unwrap();
        file.sync_data().unwrap();
        count += 1;
    }
    count as f64 / start.elapsed().as_secs_f64()
}

struct Bench {
    store: Arc<SqliteStore>,
    owner: OwnerId,
}

impl Bench {
    async fn accept(&self, run: &str) -> ClaimToken {
        let request = Accept {
            tenant: Tenant::default(),
            run_id: RunId::new(run).unwrap(),
            thread_id: ThreadId::new(run).unwrap(),
            thread_chosen: true,
            spec: LaunchSpec {
                agent: "bench".to_owned(),
                kind: "command".to_owned(),
                argv: Vec::new(),
                model: None,
                prompt: Some("x".repeat(2_000)),
                prompt_on_stdin: true,
                env: Default::default(),
                needed_env: Vec::new(),
                cwd: None,
                workspace: None,
                sandbox: SandboxSpec::default(),
            },
            digest: String::new(),
            owner: self.owner.clone(),
            nonce: SystemEntropy.nonce(),
            lease: Duration::from_secs(600),
            detached_ttl: None,
            on_disconnect: OnDisconnect::Detach,
            messages: Vec::new(),
            barrier: None,
            events: Vec::new(),
        };
        match self.store.accept(request).await.unwrap() {
            Accepted::New(claimed) => claimed.token,
            Accepted::Existing(_) => unreachable!("each run is new"),
        }
    }

    async fn appends(
        &self,
        name: &str,
        runs: usize,
        group: usize,
        time: Duration,
    ) -> (f64, Duration, Duration) {
        let mut tokens = Vec::new();
        for run in 0..runs {
            tokens.push(self.accept(&format!("{name} {run}")).await);
        }
        let start = Instant::now();
        let running: Vec<_> = tokens
            .into_iter()
            .map(|token| {
                let store = self.store.clone();
                tokio::spawn(async move {
                    let mut tail = 0;
                    let mut took = Vec::new();
                    while start.elapsed() < time {
                        let before = Instant::now();
                        tail = store.append(append(&token, tail, group, 220)).await.unwrap().tail.0;
                        took.push(before.elapsed());
                    }
                    took
                })
            })
            .collect();
        let mut took = Vec::new();
        for task in running {
            took.extend(task.await.unwrap());
        }
        let rate = took.len() as f64 / start.elapsed().as_secs_f64();
        took.sort();
        (rate, took[took.len() / 2], took[took.len() * 99 / 100])
    }

    async fn replay(&self, size: usize) -> (f64, f64) {
        let token = self.accept(&format!("replay {size}")).await;
        let mut tail = 0;
        let total = 100_000_000 / size;
        while (tail as usize) < total {
            let group = (500_000 / size).max(1);
            tail = self.store.append(append(&token, tail, group, size)).await.unwrap().tail.0;
        }
        let start = Instant::now();
        let (mut after, mut bytes, mut events) = (Seq::START, 0, 0);
        loop {
            let page =
                self.store.read(&Tenant::default(), &token.run_id, after, 4096, 1 << 20).await.unwrap();
            let Some(last) = page.events.last() else { break };
            after = last.seq;
            bytes += page.events.iter().map(|event| event.json.len()).sum::<usize>();
            events += page.events.len();
        }
        let time = start.elapsed().as_secs_f64();
        (bytes as f64 / time / 1e6, events as f64 / time)
    }
}

fn append(token: &ClaimToken, tail: u64, group: usize, size: usize) -> Append {
    let json = format!(
        "{{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m\",\"delta\":\"{}\"}}",
        "x".repeat(size - 63)
    );
    let event = |n: usize| {
        let origin = Origin::Journal { byte: tail * 300 + n as u64, index: 0 };
        NewEvent::new(origin, Chunk { kind: EventKind::TextMessageContent, json: json.clone() })
    };
    Append {
        token: token.clone(),
        expected_tail: Seq(tail),
        batch: SystemEntropy.nonce(),
        events: (0..group).map(event).collect(),
        cursor: Some(Cursor {
            journal: tail * 300,
            state: serde_json::json!({"open": ["message-1"], "calls": [], "n": tail}),
            version: 1,
            ids: tail,
            fold_from: tail,
        }),
        messages: Vec::new(),
        barrier: None,
        agent_session: None,
    }
}
