//! Other processes: dead, frozen, many at once.

use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use outlast_core::RunId;
use outlast_core::decide::ClaimRefusal;
use outlast_core::run::Purpose;
use outlast_core::transcript::{Message, Role};
use outlast_store::{Accept, AcquireLease, Append, ClaimError, Entropy, LeaseOn, NewMessage, SystemEntropy};
use rustix::process::Signal;

use super::support::{
    Process, TOLD, append_of, checkpoint, completion, eventually, host, ledger, records, try_open,
};

/// What the other process does: it accepts a run under the lease that it is told, appends an event, and then, once for
/// each byte of its standard input, tries to append another.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_drives() {
    let Ok(told) = std::env::var(TOLD) else { return };
    let (lease, dir) = told.split_once(' ').unwrap();
    let host = host(Path::new(dir), "other");
    let mut request = host.request("r", "t");
    request.lease = Duration::from_millis(lease.parse().unwrap());
    let token = host.accept_with(request).await.token;
    let mut tail = host.append(&token, 1, &["from the other"]).await.unwrap().tail.0;
    println!("driving");
    for byte in std::io::stdin().lock().bytes() {
        byte.unwrap();
        match host.append(&token, tail, &["more from the other"]).await {
            Ok(appended) => {
                tail = appended.tail.0;
                println!("appended");
            }
            Err(error) => println!("refused: {error}"),
        }
    }
}

fn driving(lease: Duration, dir: &Path) -> Process {
    let told = format!("{} {}", lease.as_millis(), dir.display());
    let mut process = Process::start("processes::a_process_that_drives", &told);
    process.said("driving");
    process
}

fn poke(process: &mut Process) {
    std::io::Write::write_all(process.child.stdin.as_mut().unwrap(), b"x").unwrap();
}

#[tokio::test]
async fn a_dead_owner_holds_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut other = driving(Duration::from_secs(3600), dir.path());
    let here = host(dir.path(), "here");
    assert!(here.record("r").await.driver.is_some());
    match here.claim("r", Purpose::Drive).await {
        Err(ClaimError::Refused(ClaimRefusal::ClaimHeld { owner, remaining })) => {
            assert_eq!(owner.as_str(), "other");
            assert!(remaining > 3_500_000);
        }
        answer => panic!("{answer:?}"),
    }
    other.kill();
    assert_eq!(here.record("r").await.driver, None, "nobody drives, as far as anybody can see");
    let claimed = here.claim("r", Purpose::Drive).await.unwrap();
    assert_eq!((claimed.token.epoch, claimed.run.tail), (2, 2));
    here.append(&claimed.token, 2, &["from here"]).await.unwrap();
}

#[tokio::test]
async fn a_frozen_owner_holds_its_lease_and_writes_nothing_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let lease = Duration::from_millis(1500);
    let mut other = driving(lease, dir.path());
    other.signal(Signal::STOP);
    let here = host(dir.path(), "here");
    let refused = here.claim("r", Purpose::Drive).await;
    assert!(matches!(refused, Err(ClaimError::Refused(ClaimRefusal::ClaimHeld { .. }))), "{refused:?}");
    let mut claimed = None;
    let waiting = Instant::now();
    eventually("the lease ends", Duration::from_secs(30), async || {
        claimed = here.claim("r", Purpose::Drive).await.ok();
        claimed.is_some()
    })
    .await;
    assert!(waiting.elapsed() < lease * 4, "a frozen owner holds no longer than its lease");
    let token = claimed.unwrap().token;
    here.append(&token, 2, &["from here"]).await.unwrap();
    poke(&mut other);
    other.signal(Signal::CONT);
    assert!(other.said("refused: ").contains("was lost"));
    let log = here.log("r").await;
    assert!(log.len() == 3 && log[2].json.contains("from here"));
}

#[tokio::test]
async fn what_a_killed_process_had_committed_is_there_and_nothing_else() {
    for round in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        let mut other = driving(Duration::from_secs(60), dir.path());
        for _ in 0..200 {
            poke(&mut other);
        }
        for _ in 0..round * 10 {
            other.said("appended");
        }
        other.kill();
        let mut told = round * 10;
        let mut rest = String::new();
        let _ = other.child.stdout.take().map(|mut out| out.read_to_string(&mut rest));
        told += rest.matches("appended").count();
        let here = host(dir.path(), "here");
        let log = here.log("r").await;
        assert!(log.len() >= 2 + told, "{} events of {told} that were told", log.len());
        assert_eq!(here.record("r").await.tail, log.len() as u64);
    }
}

/// What the other process does: one turn after the other on one thread, with a record after each, under a lease.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_ends_runs() {
    let Ok(dir) = std::env::var(TOLD) else { return };
    let host = host(Path::new(&dir), "other");
    for turn in 0.. {
        let run = format!("r{turn}");
        let messages = NewMessage::input(vec![Message::text("q", Role::User, "Hello")]);
        let token = host.accept_with(Accept { messages, ..host.request(&run, "t") }).await.token;
        let answer = NewMessage::new(2, Message::text("a", Role::Assistant, "Hel"));
        host.store.append(Append { messages: vec![answer], ..append_of(&token, 1, 10) }).await.unwrap();
        host.store.finish(completion(&token, 2)).await.unwrap();
        host.store.append_records(records(&host, "t", vec![checkpoint(&run)])).await.unwrap();
        if turn == 0 {
            let on = LeaseOn::Session(ledger(&host, "t").await.0.session_id);
            let (owner, nonce) = (host.owner.clone(), SystemEntropy.nonce());
            let wish = AcquireLease { on, owner, nonce, lasts: Duration::from_secs(3600) };
            host.store.acquire_lease(&wish).await.unwrap();
        }
        println!("ended");
    }
}

/// Wherever a process dies, each message is in one place, and a ledger says of a run what its record says.
#[tokio::test]
async fn a_ledger_is_complete_wherever_its_process_died() {
    for round in 0..6 {
        let dir = tempfile::tempdir().unwrap();
        let mut other =
            Process::start("processes::a_process_that_ends_runs", &dir.path().display().to_string());
        for _ in 0..=round {
            other.said("ended");
        }
        tokio::time::sleep(Duration::from_micros(round * 700)).await;
        other.kill();
        let here = host(dir.path(), "here");
        let (head, found) = ledger(&here, "t").await;
        let mut expected = Vec::new();
        let mut live = None;
        for turn in 0.. {
            let run = format!("r{turn}");
            let Some(record) = here.store.run(&here.tenant, &RunId::new(&*run).unwrap()).await.unwrap()
            else {
                break;
            };
            let messages = here.store.run_messages(&here.tenant, &record.run_id).await.unwrap();
            expected.push(format!("run_started/{run}"));
            if record.status.is_terminal() {
                expected.extend([
                    format!("message/{run}/-1"),
                    format!("message/{run}/2"),
                    format!("run_ended/{run}"),
                ]);
                assert_eq!(messages.len(), 2);
                expected.push(run);
            } else {
                live = Some(run);
                assert_eq!(messages.len() as u64, record.tail);
            }
        }
        let ids: Vec<_> = found.iter().map(|record| record.id.clone()).collect();
        // Of the last turn, the record that comes after its end may be missing.
        let all_but_one = &expected[..expected.len() - 1];
        assert!(expected == ids || (live.is_none() && *all_but_one == ids[..]), "{ids:?}");
        assert!(ids.len() as u64 >= 5 * (round + 1));
        let fold = head.fold.unwrap();
        assert_eq!(fold.messages as usize, ids.iter().filter(|id| id.starts_with("message/")).count());
        assert_eq!(fold.last_run.unwrap().status.is_none(), live.is_some());
        // Its lease has died with it.
        assert_eq!(head.lease, None);
        let on = LeaseOn::Session(head.session_id);
        let (owner, nonce) = (here.owner.clone(), SystemEntropy.nonce());
        let wish = AcquireLease { on, owner, nonce, lasts: Duration::from_secs(60) };
        assert_eq!(here.store.acquire_lease(&wish).await.unwrap().token.epoch, 2);
    }
}

/// Where a process died, another one that starts removes its file, and only that one.
#[tokio::test]
async fn files_of_dead_owners_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let mut other = driving(Duration::from_secs(60), dir.path());
    let names = || {
        let mut names: Vec<_> = std::fs::read_dir(dir.path().join("owners"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let here = host(dir.path(), "here");
    assert_eq!(names(), ["here", "other"]);
    other.kill();
    let third = host(dir.path(), "third");
    assert_eq!(names(), ["here", "third"]);
    third.store.close().await;
    assert_eq!(names(), ["here"]);
    drop(here);
    assert_eq!(names(), [""; 0]);
}

#[test]
fn two_living_processes_never_share_an_owner_id() {
    let dir = tempfile::tempdir().unwrap();
    let first = try_open(dir.path(), "same").unwrap();
    let refused = try_open(dir.path(), "same").unwrap_err();
    assert!(!refused.is_transient() && refused.to_string().contains("\"same\""), "{refused}");
    drop(first);
    try_open(dir.path(), "same").unwrap();
}

/// Many processes find an empty directory at once: one database comes of it.
#[tokio::test(flavor = "multi_thread")]
async fn all_start_at_once() {
    let parent = tempfile::tempdir().unwrap();
    for round in 0..5 {
        let dir = parent.path().join(format!("{round}/data"));
        let stores: Vec<_> = std::thread::scope(|scope| {
            let opening: Vec<_> = (0..8)
                .map(|n| {
                    scope.spawn({
                        let dir = &dir;
                        move || host(dir, &format!("owner {n}"))
                    })
                })
                .collect();
            opening.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let id = stores[0].store.deployment_id().await.unwrap();
        for host in &stores {
            assert_eq!(host.store.deployment_id().await.unwrap(), id);
        }
        stores[0].accept("r", "t").await;
        assert!(stores[7].store.run(&stores[7].tenant, &RunId::new("r").unwrap()).await.unwrap().is_some());
    }
}

/// Records hold secrets.
#[test]
fn nobody_else_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("data");
    let _store = try_open(&dir, "here").unwrap();
    for name in ["", "outlast.db", "outlast.db-wal", "outlast.db-shm", "owners", "owners/here", "lock"] {
        let mode = std::fs::metadata(dir.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name}: {mode:o}");
    }
}
