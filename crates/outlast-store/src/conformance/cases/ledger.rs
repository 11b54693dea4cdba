//! Ledgers.

use std::time::Duration;

use outlast_core::decide::{RecordsRefusal, SessionState};
use outlast_core::ledger::{
    Decoded, Fold, Kind, Record, SessionId, SessionStopped, StopReason, WorkspaceCheckpointed,
    WorkspaceRestored,
};
use outlast_core::run::Status;
use outlast_core::transcript::Role;
use outlast_core::{Tenant, WorkspaceRef};

use crate::conformance::world::{
    Host, World, all_at_once, append, completion, instance, instance_id, run_id, said, thread_id,
};
use crate::{
    Accept, Append, AppendRecords, Finish, ListSessions, NewMessage, NewRecord, ReadRecords, ReclaimEnd,
    RecordAppended, RecordsError, SessionHead, SessionName, StoredRecord,
};

pub(super) fn records(host: &Host, thread: &str, records: Vec<NewRecord>) -> AppendRecords {
    AppendRecords {
        tenant: host.tenant.clone(),
        thread_id: thread_id(thread),
        expected_tip: None,
        barrier: None,
        lease: None,
        pin: None,
        create: false,
        records,
    }
}

pub(super) fn checkpoint(id: &str, content: u8) -> NewRecord {
    let reference = WorkspaceRef::from_digest([content; 32]);
    let record = Record::WorkspaceCheckpointed(WorkspaceCheckpointed {
        reference,
        consistency: outlast_core::ledger::Consistency::Quiescent,
        trigger: outlast_core::ledger::Trigger::Manual,
        run_id: None,
    });
    NewRecord::new(id, record)
}

pub(super) async fn head(host: &Host, thread: &str) -> SessionHead {
    let name = SessionName::Thread(thread_id(thread));
    host.store.session(&host.tenant, &name).await.expect("answered").expect("there is a session")
}

pub(super) async fn read(host: &Host, session: &SessionId) -> Vec<StoredRecord> {
    let query = ReadRecords {
        session_id: session.clone(),
        after: 0,
        kinds: Vec::new(),
        max_records: usize::MAX,
        max_bytes: usize::MAX,
    };
    host.store.read_records(&query).await.expect("read").records
}

/// A run from its start to its end, with a question and an answer.
pub(super) async fn turn(host: &Host, run: &str, thread: &str) {
    let messages =
        NewMessage::input(vec![said(&format!("{run}-q"), Role::User, &format!("ask {run}\nmore"))]);
    let token = host.accept_with(Accept { messages, ..host.request(run, thread) }).await.token;
    let answer = said(&format!("{run}-a"), Role::Assistant, &format!("answer {run}"));
    let finish = completion(&token, 1);
    let append = Append { messages: vec![NewMessage::new(2, answer)], ..finish.append };
    host.store.finish(Finish { append, ..finish }).await.expect("ended");
}

fn told(records: &[StoredRecord]) -> Vec<String> {
    records.iter().map(|record| format!("{} {}", record.seq, record.id)).collect()
}

/// The start is recorded with the acceptance, messages and end with the end, in this order and without gaps.
pub async fn runs_write_their_own_records(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let deployment = a.store.deployment_id().await.expect("answered");
    let messages = NewMessage::input(vec![said("u", Role::User, "\n  Fix it, please \nNow")]);
    let token = a.accept_with(Accept { messages, ..a.request("r1", "t") }).await.token;
    let session = head(&b, "t").await;
    assert_eq!(session.session_id, SessionId::of(&deployment, &a.tenant, &thread_id("t")));
    assert_eq!((session.tip, session.state), (1, SessionState::Active));
    let by_id = SessionName::Id(session.session_id.clone());
    assert_eq!(b.store.session(&b.tenant, &by_id).await.expect("answered"), Some(session.clone()));
    assert_eq!(told(&read(&b, &session.session_id).await), ["1 run_started/r1"]);
    let finish = completion(&token, 1);
    let said = said("m", Role::Assistant, "Done\u{0}\u{1F980}");
    let append = Append { messages: vec![NewMessage::new(2, said.clone())], ..finish.append };
    let before = b.store.thread_messages(&b.tenant, &thread_id("t"), None, 9).await.expect("read");
    assert_eq!((before.messages.len(), before.before), (1, None), "those of a live run are there");
    a.store.finish(Finish { append, ..finish }).await.expect("ended");
    turn(&b, "r2", "t").await;
    let all = read(&a, &session.session_id).await;
    let expected = [
        "1 run_started/r1",
        "2 message/r1/-1",
        "3 message/r1/2",
        "4 run_ended/r1",
        "5 run_started/r2",
        "6 message/r2/-1",
        "7 message/r2/2",
        "8 run_ended/r2",
    ];
    assert_eq!(told(&all), expected);
    assert!(all.iter().all(StoredRecord::is_intact), "{all:?}");
    let Ok(Decoded::Known(record)) = all[2].decode() else { panic!("{:?}", all[2]) };
    assert_eq!(*record, Record::Message { run_id: run_id("r1"), ordinal: 2, message: said });
    let Ok(Decoded::Known(record)) = all[3].decode() else { panic!("{:?}", all[3]) };
    let Record::RunEnded(ended) = *record else { panic!("{record:?}") };
    assert_eq!((ended.status, ended.exit_code), (Status::Completed, Some(0)));
    let fold = head(&b, "t").await.fold.expect("a fold");
    assert_eq!((fold.seq, fold.messages, fold.runs), (8, 4, 2));
    assert_eq!(fold.title.as_deref(), Some("Fix it, please"));
    assert_eq!(
        fold.last_run.map(|run| (run.run_id, run.status)),
        Some((run_id("r2"), Some(Status::Completed)))
    );
    for run in ["r1", "r2"] {
        assert_eq!(b.store.run_messages(&b.tenant, &run_id(run)).await.expect("read").len(), 2, "{run}");
    }
}

/// The same id and content count once, also in company; another content changes nothing at all.
pub async fn the_same_record_again(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    turn(&a, "r", "t").await;
    let first = a.store.append_records(records(&a, "t", vec![checkpoint("c1", 1)])).await.expect("added");
    assert_eq!(first, [RecordAppended { seq: 5, appended: true }]);
    let both = vec![checkpoint("c2", 2), checkpoint("c1", 1)];
    let again = b.store.append_records(records(&b, "t", both)).await.expect("added");
    let expected = [RecordAppended { seq: 6, appended: true }, RecordAppended { seq: 5, appended: false }];
    assert_eq!(again, expected);
    let before = head(&a, "t").await;
    for (other, taken) in [
        (vec![checkpoint("c3", 3), checkpoint("c1", 9)], 5),
        (vec![NewRecord::new("c2", Record::SessionStopped(SessionStopped { reason: StopReason::User }))], 6),
    ] {
        let refused = a.store.append_records(records(&a, "t", other)).await;
        let Err(RecordsError::Refused(RecordsRefusal::IdempotencyCollision { seq, .. })) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(seq, taken);
    }
    assert_eq!(head(&b, "t").await, before);
    // The same within one append.
    let twice = |other| vec![checkpoint("c4", 4), checkpoint("c5", 5), checkpoint("c4", other)];
    let refused = a.store.append_records(records(&a, "t", twice(9))).await;
    assert!(
        matches!(&refused, Err(RecordsError::Refused(RecordsRefusal::IdempotencyCollision { id, .. })) if id == "c4"),
        "{refused:?}"
    );
    assert_eq!(head(&b, "t").await, before);
    for appended in [true, false] {
        let answer = a.store.append_records(records(&a, "t", twice(4))).await.expect("answered");
        let expected = [(7, appended), (8, appended), (7, false)];
        assert_eq!(answer, expected.map(|(seq, appended)| RecordAppended { seq, appended }));
    }
    assert_eq!(head(&b, "t").await.tip, 8);
    // A run's own records cannot be written a second time either.
    let own = read(&a, &before.session_id).await[0].decode();
    let Ok(Decoded::Known(record)) = own else { panic!("{own:?}") };
    let again =
        a.store.append_records(records(&a, "t", vec![NewRecord::new("run_started/r", *record)])).await;
    assert_eq!(again.expect("answered"), [RecordAppended { seq: 1, appended: false }]);
}

/// An append that names a tip is made there or not at all; what was made before is answered from any tip.
pub async fn a_moved_tip_changes_nothing(world: World) {
    let a = world.host("a").await;
    turn(&a, "r", "t").await;
    let at = |tip, new| AppendRecords { expected_tip: Some(tip), ..records(&a, "t", vec![new]) };
    for wrong in [0, 3, 5] {
        let refused = a.store.append_records(at(wrong, checkpoint("c", 1))).await;
        let Err(RecordsError::Refused(RecordsRefusal::TipMoved { expected, actual })) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!((expected, actual), (wrong, 4));
    }
    assert_eq!(head(&a, "t").await.tip, 4);
    let added = a.store.append_records(at(4, checkpoint("c", 1))).await.expect("added");
    assert_eq!(added, [RecordAppended { seq: 5, appended: true }]);
    let again = a.store.append_records(at(4, checkpoint("c", 1))).await.expect("answered");
    assert_eq!(again, [RecordAppended { seq: 5, appended: false }]);
}

/// Of many at one tip one is made; of many that name none, all, each with a number of its own.
pub async fn racing_appends(world: World) {
    let a = world.host("a").await;
    turn(&a, "r", "t").await;
    for (tip, winners) in [(Some(4), 1), (None, 8)] {
        let before = head(&a, "t").await.tip;
        let tasks = (0..8u8).map(|n| {
            let a = a.clone();
            async move {
                let new = checkpoint(&format!("{tip:?} {n}"), n);
                let wanted = AppendRecords { expected_tip: tip, ..records(&a, "t", vec![new]) };
                a.store.append_records(wanted).await.map(|added| added[0].seq)
            }
        });
        let mut added: Vec<u64> = all_at_once(tasks).await.into_iter().filter_map(Result::ok).collect();
        added.sort_unstable();
        let expected: Vec<u64> = (before + 1..=before + winners).collect();
        assert_eq!(added, expected);
    }
    let session = head(&a, "t").await;
    assert_eq!(read(&a, &session.session_id).await.len() as u64, session.tip);
    assert_eq!(session.fold.expect("a fold").checkpoints, 9);
}

/// Whoever adds to the ledger of a live run takes nothing from its driver.
pub async fn beside_a_driver(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let token = a.accept("r", "t").await.token;
    b.store.append_records(records(&b, "t", vec![checkpoint("c1", 1)])).await.expect("added");
    a.append(&token, 1, &["x"]).await.expect("still the driver");
    b.store.append_records(records(&b, "t", vec![checkpoint("c2", 2)])).await.expect("added");
    a.complete(&token, 2).await.expect("still the driver");
    let session = head(&a, "t").await;
    let expected = ["1 run_started/r", "2 c1", "3 c2", "4 run_ended/r"];
    assert_eq!(told(&read(&a, &session.session_id).await), expected);
    let workspace = session.fold.and_then(|fold| fold.workspace).expect("a workspace");
    assert_eq!((workspace.seq, workspace.restored), (3, false));
}

/// Pages end at their bounds, hold at least one record, and say whether there is more.
pub async fn read_in_pages(world: World) {
    let a = world.host("a").await;
    for run in ["r1", "r2"] {
        turn(&a, run, "t").await;
    }
    a.store.append_records(records(&a, "t", vec![checkpoint("c", 1)])).await.expect("added");
    let id = head(&a, "t").await.session_id;
    let page = async |after, kinds: &[Kind], max_records, max_bytes| {
        let kinds = kinds.to_vec();
        let query = ReadRecords { session_id: id.clone(), after, kinds, max_records, max_bytes };
        let page = a.store.read_records(&query).await.expect("read");
        assert_eq!(page.tip, 9);
        (page.records.iter().map(|record| record.seq).collect::<Vec<_>>(), page.more)
    };
    assert_eq!(page(0, &[], 4, usize::MAX).await, (vec![1, 2, 3, 4], true));
    assert_eq!(page(4, &[], 5, usize::MAX).await, (vec![5, 6, 7, 8, 9], false));
    assert_eq!(page(4, &[], usize::MAX, 1).await, (vec![5], true));
    assert_eq!(page(8, &[], usize::MAX, 1).await, (vec![9], false));
    assert_eq!(page(9, &[], 5, usize::MAX).await, (vec![], false));
    assert_eq!(page(99, &[], 5, usize::MAX).await, (vec![], false));
    assert_eq!(
        page(0, &[Kind::RunStarted, Kind::WorkspaceCheckpointed], 2, usize::MAX).await,
        (vec![1, 5], true)
    );
    assert_eq!(
        page(1, &[Kind::RunStarted, Kind::WorkspaceCheckpointed], 2, usize::MAX).await,
        (vec![5, 9], false)
    );
    assert_eq!(page(0, &[Kind::Barrier], 2, usize::MAX).await, (vec![], false));
}

/// The latest messages come first, those of a live run with them, and each page says where the one before it ends.
pub async fn messages_in_pages(world: World) {
    let a = world.host("a").await;
    for run in ["r1", "r2", "r3"] {
        turn(&a, run, "t").await;
    }
    let messages = NewMessage::input(vec![said("q", Role::User, "live")]);
    let token = a.accept_with(Accept { messages, ..a.request("live", "t") }).await.token;
    let answer = NewMessage::new(2, said("x", Role::Assistant, "living"));
    a.store.append(Append { messages: vec![answer], ..append(&token, 1, &["x"]) }).await.expect("written");
    let page = async |before, limit| {
        let page = a.store.thread_messages(&a.tenant, &thread_id("t"), before, limit).await.expect("read");
        let told: Vec<_> = page.messages.iter().map(|row| format!("{}{}", row.run_id, row.ordinal)).collect();
        (told.join(" "), page.before)
    };
    assert_eq!(page(None, 100).await.0, "r1-1 r12 r2-1 r22 r3-1 r32 live-1 live2");
    let mut found = Vec::new();
    let mut before = None;
    loop {
        let (told, next) = page(before, 3).await;
        found.insert(0, told);
        before = next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(found, ["r1-1 r12", "r2-1 r22 r3-1", "r32 live-1 live2"]);
    let (told, next) = page(None, 2).await;
    assert_eq!(told, "live-1 live2");
    assert_eq!(page(next, 100).await, ("r1-1 r12 r2-1 r22 r3-1 r32".to_owned(), None));
}

/// What is kept of a ledger is what its records amount to.
pub async fn the_fold_is_that_of_the_records(world: World) {
    let a = world.host("a").await;
    turn(&a, "r1", "t").await;
    let restored = Record::WorkspaceRestored(WorkspaceRestored {
        reference: WorkspaceRef::from_digest([7; 32]),
        run_id: Some(run_id("r2")),
    });
    let stopped = Record::SessionStopped(SessionStopped { reason: StopReason::Idle });
    let mixed = vec![
        checkpoint("c", 1),
        NewRecord::new("w", restored),
        NewRecord::new("s", stopped),
        NewRecord::new("b", Record::Barrier { epoch: 3 }),
    ];
    a.store.append_records(records(&a, "t", mixed)).await.expect("added");
    let check = async || {
        let session = head(&a, "t").await;
        let mut fold = Fold::empty();
        for stored in read(&a, &session.session_id).await {
            let Ok(Decoded::Known(record)) = stored.decode() else { panic!("{stored:?}") };
            fold.apply(stored.seq, stored.at, &record);
        }
        assert_eq!(session.fold, Some(fold.clone()));
        (session, fold)
    };
    let (session, fold) = check().await;
    assert_eq!((session.barrier, fold.stopped.map(|stopped| stopped.seq)), (8, Some(7)));
    let active = session.active_at;
    world.pass(Duration::from_secs(5)).await;
    let barrier = NewRecord::new("b2", Record::Barrier { epoch: 4 });
    a.store.append_records(records(&a, "t", vec![barrier])).await.expect("added");
    assert_eq!(head(&a, "t").await.active_at, active, "upkeep is no activity");
    turn(&a, "r2", "t").await;
    let (session, fold) = check().await;
    assert_eq!((session.active_at, fold.stopped), (active + 5_000, None));
}

/// A record that was written elsewhere keeps its time; the session was active now.
pub async fn times_of_elsewhere(world: World) {
    let a = world.host("a").await;
    let stopped = Record::SessionStopped(SessionStopped { reason: StopReason::User });
    let new = NewRecord::written_at(12_345, "s", stopped);
    let wanted = AppendRecords { create: true, ..records(&a, "t", vec![new, checkpoint("c", 1)]) };
    a.store.append_records(wanted).await.expect("added");
    let session = head(&a, "t").await;
    let times: Vec<_> = read(&a, &session.session_id).await.iter().map(|record| record.at).collect();
    let now = a.store.now().await.expect("answered");
    assert_eq!(times, [12_345, now]);
    assert_eq!(session.active_at, now);
    assert_eq!(session.fold.and_then(|fold| fold.stopped).map(|stopped| stopped.at), Some(12_345));
}

/// Without a run there is no session, unless one is wanted; another tenant's does not exist.
pub async fn no_session(world: World) {
    let a = world.host("a").await;
    let name = SessionName::Thread(thread_id("none"));
    assert_eq!(a.store.session(&a.tenant, &name).await.expect("answered"), None);
    assert_eq!(a.store.settle_session(&a.tenant, &thread_id("none")).await.expect("answered"), None);
    let refused = a.store.append_records(records(&a, "none", vec![checkpoint("c", 1)])).await;
    assert!(matches!(refused, Err(RecordsError::Refused(RecordsRefusal::SessionNotFound(_)))), "{refused:?}");
    let unknown = SessionId::of("x", &a.tenant, &thread_id("none"));
    let query =
        ReadRecords { session_id: unknown, after: 0, kinds: Vec::new(), max_records: 1, max_bytes: 1 };
    let refused = a.store.read_records(&query).await;
    assert!(matches!(refused, Err(RecordsError::Refused(RecordsRefusal::SessionNotFound(_)))), "{refused:?}");
    let wanted = AppendRecords { create: true, ..records(&a, "none", vec![checkpoint("c", 1)]) };
    a.store.append_records(wanted).await.expect("added");
    assert_eq!(head(&a, "none").await.tip, 1);
    let yours = Host { tenant: Tenant("you".to_owned()), ..a.clone() };
    for name in [name, SessionName::Id(head(&a, "none").await.session_id)] {
        assert_eq!(yours.store.session(&yours.tenant, &name).await.expect("answered"), None, "{name:?}");
    }
    turn(&yours, "r", "none").await;
    assert_ne!(head(&yours, "none").await.session_id, head(&a, "none").await.session_id);
    assert_eq!(head(&a, "none").await.tip, 1);
}

/// By id in complete pages, or the last active first.
pub async fn sessions_are_listed(world: World) {
    let a = world.host("a").await;
    let yours = Host { tenant: Tenant("you".to_owned()), ..a.clone() };
    for (n, thread) in ["t1", "t2", "t3"].into_iter().enumerate() {
        turn(&a, &format!("r{n}"), thread).await;
        world.pass(Duration::from_millis(5)).await;
    }
    turn(&yours, "yours", "t").await;
    let list = async |query: ListSessions| {
        let found = a.store.list_sessions(&query).await.expect("listed");
        found.into_iter().map(|session| (session.session_id, session.thread_id)).collect::<Vec<_>>()
    };
    let mut pages = Vec::new();
    let mut after = None;
    loop {
        let page = list(ListSessions { after: after.clone(), limit: 3, ..ListSessions::default() }).await;
        after = page.last().map(|(id, _)| id.clone());
        if page.is_empty() {
            break;
        }
        pages.extend(page);
    }
    let ids: Vec<_> = pages.iter().map(|(id, _)| id.clone()).collect();
    assert!(ids.is_sorted() && ids.len() == 4, "{ids:?}");
    let mine = Some(a.tenant.clone());
    let newest =
        list(ListSessions { tenant: mine.clone(), newest: true, limit: 2, ..ListSessions::default() }).await;
    let newest: Vec<_> = newest.iter().map(|(_, thread)| thread.as_str()).collect();
    assert_eq!(newest, ["t3", "t2"]);
    let deleted = vec![SessionState::Deleted];
    assert_eq!(list(ListSessions { states: deleted, limit: 9, ..ListSessions::default() }).await, []);
}

/// Idle is a session without a live run and without a sandbox, in which nothing has happened for so long.
pub async fn who_is_idle(world: World) {
    let a = world.host("a").await;
    turn(&a, "r1", "idle").await;
    turn(&a, "r2", "late").await;
    a.accept("r3", "live").await;
    let token = a.accept("r4", "t").await.token;
    a.store.create_instance(&token, &instance("i", "key", None, 1)).await.expect("made");
    a.complete(&token, 1).await.expect("ended");
    world.pass(Duration::from_secs(60)).await;
    turn(&a, "r5", "late").await;
    let hour = Duration::from_secs(3600);
    let idle = async || {
        let query = ListSessions { idle_for: Some(hour), limit: 9, ..ListSessions::default() };
        let mut found: Vec<_> = a.store.list_sessions(&query).await.expect("listed");
        found.sort_by_key(|session| session.thread_id.clone());
        found.into_iter().map(|session| session.thread_id.as_str().to_owned()).collect::<Vec<_>>()
    };
    world.pass(hour - Duration::from_millis(60_001)).await;
    assert_eq!(idle().await, [""; 0]);
    world.pass(Duration::from_millis(1)).await;
    assert_eq!(idle().await, ["idle"]);
    world.pass(Duration::from_secs(60)).await;
    assert_eq!(idle().await, ["idle", "late"]);
    a.store.begin_reclaim(&a.reclaim("i", true)).await.expect("begun");
    assert_eq!(idle().await, ["idle", "late"]);
    a.store.end_reclaim(&instance_id("i"), &a.owner, &ReclaimEnd::Gone).await.expect("written");
    assert_eq!(idle().await, ["idle", "late", "t"]);
}
