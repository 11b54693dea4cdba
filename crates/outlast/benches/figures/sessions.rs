//! Ledgers, the collection of bodies, and snapshots of workspaces.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use outlast::core::ledger::{Record, SessionStopped, StopReason};
use outlast::core::transcript::{Message, Role};
use outlast::core::{RunId, ThreadId};
use outlast::session::Sessions;
use outlast::session::collect::GcOptions;
use outlast::store::{AppendRecords, NewRecord, Offloaded, SessionName};
use outlast::{Local, LocalOptions};

use crate::machine::{Place, now, timed};
use crate::report::{figure, millis};

const RECORDS: u64 = 100_000;
const BODIES: usize = 10_000;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("runtime")
}

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

/// Adding records one by one, opening a long thread, and collecting its bodies.
pub fn ledger() {
    let place = Place::new();
    let runtime = runtime();
    runtime.block_on(async {
        let local = Local::open(LocalOptions::new(place.data_dir())).await.expect("open");
        let sessions = local.host().sessions().await.expect("sessions");
        let began = now();
        const ONE_BY_ONE: u64 = 2_000;
        for n in 0..ONE_BY_ONE {
            let stopped = Record::SessionStopped(SessionStopped { reason: StopReason::User });
            append(&sessions, vec![NewRecord::new(format!("s{n}"), stopped)]).await;
        }
        figure(
            "ledger: records added one by one",
            ONE_BY_ONE as f64 / began.elapsed().as_secs_f64(),
            "/s",
            "",
        );
        let began = now();
        for first in (ONE_BY_ONE..RECORDS - BODIES as u64).step_by(500) {
            append(&sessions, (first..first + 500).map(message).collect()).await;
        }
        let added = RECORDS as f64 - BODIES as f64 - ONE_BY_ONE as f64;
        figure("ledger: messages added 500 at a time", added / began.elapsed().as_secs_f64(), "/s", "");
        bodies(&sessions).await;
        local.close().await;
    });
    // As somebody who has just come: another process, and what it has read is not in its memory.
    runtime.block_on(async {
        let local = Local::open(LocalOptions::new(place.data_dir())).await.expect("open");
        let host = local.host();
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
        figure(
            "opening a thread of 100000 records, the latest 100 messages: p50",
            millis(times[10]),
            "ms",
            "<= 50 ms",
        );
        figure("the same, the slowest of 20", millis(times[19]), "ms", "<= 50 ms");
        let sessions = host.sessions().await.expect("sessions");
        let head = sessions.find(host.tenant(), "long").await.expect("read").expect("there");
        let options = GcOptions { grace: Duration::ZERO, dry_run: false };
        let began = now();
        let result = sessions.collect(&head, &options, &|| true).await.expect("collected");
        assert_eq!((result.referenced, result.deleted), (BODIES as u64 / 2, BODIES as u64 / 2));
        figure(
            "collecting 10000 bodies of 100000 records, half of them orphans",
            began.elapsed().as_secs_f64(),
            "s",
            "<= 2 s",
        );
        let began = now();
        let head = sessions.find(host.tenant(), "long").await.expect("read").expect("there");
        let result = sessions.collect(&head, &options, &|| true).await.expect("collected");
        assert_eq!(result.deleted, 0);
        figure("the same again, with nothing to delete", began.elapsed().as_secs_f64(), "s", "<= 2 s");
        local.close().await;
    });
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

const FILES: usize = 10_000;
const TREE_BYTES: usize = 500 << 20;

/// Ten thousand files of 500 MB, half of it as good as random, in a hundred directories.
fn make_tree(root: &Path) {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let size = TREE_BYTES / FILES;
    for n in 0..FILES {
        let dir = root.join(format!("d{}", n % 100));
        fs::create_dir_all(&dir).expect("directory");
        fs::write(dir.join(format!("f{n}")), content(&mut state, size)).expect("file");
    }
}

fn content(state: &mut u64, size: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size);
    while bytes.len() < size {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
        bytes.extend_from_slice(b"        ");
    }
    bytes.truncate(size);
    bytes
}

fn change(root: &Path, part: usize) {
    let mut state = 0xD1B5_4A32_D192_ED03_u64;
    for n in (0..FILES).step_by(part) {
        let path = root.join(format!("d{}/f{n}", n % 100));
        fs::write(path, content(&mut state, TREE_BYTES / FILES)).expect("file");
    }
}

fn run(command: &mut Command) -> Duration {
    let (status, took) =
        timed(|| command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("runs"));
    assert!(status.success(), "{command:?}: {status}");
    took
}

/// A tree's first snapshot, the same again, and with one file in a hundred changed: side by side with what people use.
pub fn workspaces() {
    let place = Place::new();
    let tree = place.path().join("tree");
    make_tree(&tree);
    let _ = Command::new("sync").status();
    let archive = place.path().join("tree.tar.zst");
    let tar = || {
        let script =
            format!("tar -C {} -cf - . | zstd -q -3 -T0 -f -o {}", tree.display(), archive.display());
        run(Command::new("sh").args(["-c", &script]))
    };
    let restic = Command::new("restic").arg("version").output().is_ok();
    let repository = place.path().join("restic");
    let backup = || {
        run(Command::new("restic")
            .args(["backup", "--quiet", "-r"])
            .args([&repository, &tree])
            .env("RESTIC_PASSWORD", "x")
            .env("RESTIC_CACHE_DIR", place.path().join("restic-cache")))
    };
    if restic {
        run(Command::new("restic")
            .args(["init", "--quiet", "-r"])
            .arg(&repository)
            .env("RESTIC_PASSWORD", "x"));
    }
    // By the program, its start included, as the others are.
    let checkpoint = || {
        let dir = tree.to_str().expect("utf-8");
        run(&mut place.outlast(["workspace", "checkpoint", "bench", "--dir", dir]))
    };
    for (what, aim) in [("first", ""), ("unchanged", "<= 0.3 s"), ("1 % changed", "")] {
        if what == "1 % changed" {
            change(&tree, 100);
        }
        figure(
            &format!("workspace of 10000 files, 500 MB, {what}: checkpoint"),
            checkpoint().as_secs_f64(),
            "s",
            aim,
        );
        figure(&format!("    {what}: tar | zstd -3"), tar().as_secs_f64(), "s", "");
        if restic {
            figure(&format!("    {what}: restic backup"), backup().as_secs_f64(), "s", "");
        }
    }
    let into = place.path().join("restored");
    let reference =
        place.outlast(["workspace", "checkpoint", "bench", "--dir", tree.to_str().expect("utf-8")]);
    let mut reference = reference;
    let printed = reference.stderr(Stdio::null()).output().expect("runs").stdout;
    let reference = String::from_utf8(printed).expect("text");
    let restore =
        ["workspace", "restore", "bench", reference.trim(), "--into", into.to_str().expect("utf-8")];
    figure("    restore", run(&mut place.outlast(restore)).as_secs_f64(), "s", "");
}
