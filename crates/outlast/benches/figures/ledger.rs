//! Ledgers, and the collection of bodies.

use std::time::Duration;

use outlast::core::ledger::{Record, SessionStopped, StopReason};
use outlast::core::transcript::{Message, Role};
use outlast::core::{RunId, ThreadId};
use outlast::session::Sessions;
use outlast::session::collect::GcOptions;
use outlast::store::{AppendRecords, NewRecord, Offloaded, SessionName};
use outlast::{Host, Local, LocalOptions, StoreChoice};

use crate::machine::{Place, now};
use crate::postgres::Schema;
use crate::report::{figure, millis};

const RECORDS: u64 = 100_000;
const BODIES: usize = 10_000;

fn thread() -> ThreadId {
    ThreadId::new("long").expect("id")
}

fn message(n: u64) -> NewRecord {
    let run_id = RunId::new(format!("run-{}", n / 20)).expect("id");
    let text = format!(
        "message {n} says something of about a hundred bytes, as short messages of people and agents do"
    );
    let (ordinal, message) = ((n % 20) as i64, Message::text(format!("m{n}"), Role::Assistant, text));
    let record = Record::Message { run_id, ordinal, message };
    NewRecord::new(record.own_id().expect("its own"), record)
}

fn append(sessions: &Sessions, records: Vec<NewRecord>) -> impl Future<Output = ()> {
    let append = AppendRecords {
        tenant: Default::default(),
        thread_id: thread(),
        expected_tip: None,
        barrier: records.iter().any(|new| new.offloaded.is_some()).then_some(0),
        lease: None,
        pin: None,
        create: true,
        records,
    };
    let store = sessions.store().clone();
    async move {
        store.append_records(append).await.expect("appended");
    }
}

/// In SQLite.
pub fn ledger() {
    let place = Place::new();
    measure("", || LocalOptions::new(place.data_dir()));
}

/// In PostgreSQL.
pub fn postgres_ledger() {
    let Some(schema) = Schema::new("postgres-ledger") else { return };
    let place = Place::new();
    measure("PostgreSQL, ", || LocalOptions {
        store: StoreChoice::Postgres { url: schema.url.clone(), notifications: true },
        ..LocalOptions::new(place.data_dir())
    });
}

/// Adding records, opening a long thread, and collecting its bodies.
fn measure(of: &str, options: impl Fn() -> LocalOptions) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("runtime");
    runtime.block_on(async {
        let local = Local::open(options()).await.expect("open");
        fill(of, &local.host().sessions().await.expect("sessions")).await;
        local.close().await;
        // As somebody who has just come: what was read before is not in this one's memory.
        let local = Local::open(options()).await.expect("open");
        open(of, local.host()).await;
        collect(of, &local.host().sessions().await.expect("sessions")).await;
        local.close().await;
    });
}

async fn fill(of: &str, sessions: &Sessions) {
    let began = now();
    const ONE_BY_ONE: u64 = 2_000;
    for n in 0..ONE_BY_ONE {
        let stopped = Record::SessionStopped(SessionStopped { reason: StopReason::User });
        append(sessions, vec![NewRecord::new(format!("s{n}"), stopped)]).await;
    }
    let rate = ONE_BY_ONE as f64 / began.elapsed().as_secs_f64();
    figure(&format!("{of}ledger: records added one by one"), rate, "/s", "");
    let began = now();
    let last = RECORDS - BODIES as u64;
    for first in (ONE_BY_ONE..last).step_by(500) {
        append(sessions, (first..first + 500).map(message).collect()).await;
    }
    let rate = (last - ONE_BY_ONE) as f64 / began.elapsed().as_secs_f64();
    figure(&format!("{of}ledger: messages added 500 at a time"), rate, "/s", "");
    bodies(sessions).await;
}

async fn open(of: &str, host: &Host) {
    let mut times = Vec::new();
    for _ in 0..20 {
        let began = now();
        let name = SessionName::Thread(thread());
        let head = host.store().session(host.tenant(), &name).await.expect("read").expect("there");
        assert!(head.tip >= RECORDS && head.fold.is_some());
        let page = host.store().thread_messages(host.tenant(), &thread(), None, 100).await.expect("read");
        assert_eq!(page.messages.len(), 100);
        times.push(began.elapsed());
    }
    times.sort();
    let name = format!("{of}opening a thread of 100000 records: p50");
    figure(&name, millis(times[10]), "ms", "<= 50 ms");
    figure("    the slowest of 20", millis(times[19]), "ms", "<= 50 ms");
}

async fn collect(of: &str, sessions: &Sessions) {
    let options = GcOptions { grace: Duration::ZERO, dry_run: false };
    let name = format!("{of}collecting 10000 bodies, half of them orphans");
    for (name, deleted) in [(name.as_str(), BODIES as u64 / 2), ("    again, with nothing to delete", 0)] {
        let head = sessions.find(&Default::default(), "long").await.expect("read").expect("there");
        let began = now();
        let result = sessions.collect(&head, &options, &|| true).await.expect("collected");
        figure(name, began.elapsed().as_secs_f64(), "s", "<= 2 s");
        assert_eq!((result.referenced, result.deleted), (BODIES as u64 / 2, deleted));
    }
}

/// Ten thousand bodies, to half of which a record points.
async fn bodies(sessions: &Sessions) {
    let session = sessions.id_of(&Default::default(), &thread());
    let mut records = Vec::new();
    for n in 0..BODIES as u64 {
        let new = message(1_000_000 + n);
        let envelope = new.record.envelope(&new.id, None);
        let pointer = sessions.bodies().put(&session, &envelope).await.expect("put");
        if n % 2 == 0 {
            let offloaded = Some(Offloaded { pointer, sum: envelope.sum() });
            records.push(NewRecord { offloaded, ..new });
        } else {
            records.push(new);
        }
        if records.len() == 500 {
            append(sessions, std::mem::take(&mut records)).await;
        }
    }
    append(sessions, records).await;
}
