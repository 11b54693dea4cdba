//! What the version before has left, and what it goes on doing beside this one.

use std::time::Duration;

use outlast_core::decide::RecordsRefusal;
use outlast_core::ledger::{Consistency, Pointer, Record, SessionId, Trigger, WorkspaceCheckpointed};
use outlast_core::run::Purpose;
use outlast_core::transcript::{Message, Role};
use outlast_core::{RunId, ThreadId, WorkspaceRef};
use outlast_store::conformance::Host;
use outlast_store::{
    Append, AppendRecords, ListSessions, NewMessage, NewRecord, Offloaded, ReadRecords, RecordsError,
    SessionHead, SessionName, StoredRecord,
};

use crate::support::{OldHost, Schema, ending, host, numbered};

fn thread(id: &str) -> ThreadId {
    ThreadId::new(id).expect("id")
}

async fn session(host: &Host, id: &str) -> Option<SessionHead> {
    host.store.session(&host.tenant, &SessionName::Thread(thread(id))).await.expect("answered")
}

async fn settled(host: &Host, id: &str) -> SessionHead {
    host.store.settle_session(&host.tenant, &thread(id)).await.expect("answered").expect("a session")
}

async fn records(host: &Host, session: &SessionId) -> Vec<String> {
    let query = ReadRecords {
        session_id: session.clone(),
        after: 0,
        kinds: Vec::new(),
        max_records: usize::MAX,
        max_bytes: usize::MAX,
    };
    let page = host.store.read_records(&query).await.expect("read");
    assert!(page.records.iter().all(StoredRecord::is_intact), "{page:?}");
    assert!(page.records.iter().zip(1..).all(|(record, seq)| record.seq == seq), "{page:?}");
    assert_eq!(page.tip, page.records.len() as u64);
    page.records.into_iter().map(|record| record.id).collect()
}

/// What the thread has said, as this version tells it.
async fn transcript(host: &Host, id: &str) -> Vec<(String, i64, Message)> {
    let page = host.store.thread_messages(&host.tenant, &thread(id), None, usize::MAX).await.expect("read");
    page.messages
        .into_iter()
        .map(|row| {
            assert_eq!(row.pointer, None);
            (row.run_id.as_str().to_owned(), row.ordinal, row.message)
        })
        .collect()
}

async fn of_run(host: &Host, run: &str) -> Vec<Message> {
    let rows = host.store.run_messages(&host.tenant, &RunId::new(run).expect("id")).await.expect("read");
    rows.into_iter().map(|row| row.message).collect()
}

fn checkpoint(id: &str, tip: u64) -> AppendRecords {
    let record = Record::WorkspaceCheckpointed(WorkspaceCheckpointed {
        reference: WorkspaceRef::from_digest([1; 32]),
        consistency: Consistency::Quiescent,
        trigger: Trigger::Manual,
        run_id: None,
    });
    AppendRecords {
        tenant: Default::default(),
        thread_id: thread("t"),
        expected_tip: Some(tip),
        barrier: None,
        lease: None,
        pin: None,
        create: false,
        records: vec![NewRecord::new(id, record)],
    }
}

/// Threads have sessions at once, and records with the next write; what they have said is the same throughout.
#[tokio::test(flavor = "multi_thread")]
async fn threads_get_sessions_and_keep_what_they_have_said() {
    let schema = Schema::new().await;
    let old = OldHost::first(&schema).await;
    for (day, run) in ["r2", "r1"].into_iter().enumerate() {
        schema.set_now(1_000_000 + 1_000 * day as u64).await;
        old.accept(run, "t").await;
        old.say(run, 0, 1, "par").await;
        old.say(run, 1, 1, &format!("answer {run}\u{0}\u{1F980}")).await;
        old.finish(run).await;
    }
    old.accept("live", "u").await;
    old.say("live", 0, 1, "half").await;
    old.accept("v1", "v").await;
    old.finish("v1").await;
    old.accept("v2", "v").await;
    schema.set_now(9_000_000).await;
    let before = (old.transcript("t").await, old.transcript("u").await);
    assert_eq!((before.0.len(), before.1.len()), (4, 2));

    let a = host(&schema.url, "a").await;
    assert_eq!((transcript(&a, "t").await, transcript(&a, "u").await), before);
    let found = session(&a, "t").await.expect("a session");
    assert_eq!((found.tip, found.created_at, found.active_at), (0, 1_000_000, 1_001_000));
    let deployment = a.store.deployment_id().await.expect("answered");
    assert_eq!(found.session_id, SessionId::of(&deployment, &a.tenant, &thread("t")));
    let idle = ListSessions { idle_for: Some(Duration::from_secs(60)), limit: 9, ..ListSessions::default() };
    let idle = a.store.list_sessions(&idle).await.expect("listed");
    assert_eq!(idle, [found], "that is old, and the other lives");

    let t = settled(&a, "t").await;
    let of_t = ["run_started/r2", "message/r2/-1", "message/r2/1", "run_ended/r2"].into_iter().chain([
        "run_started/r1",
        "message/r1/-1",
        "message/r1/1",
        "run_ended/r1",
    ]);
    assert_eq!(records(&a, &t.session_id).await, of_t.collect::<Vec<_>>(), "in order of acceptance");
    let fold = t.fold.clone().expect("a fold");
    assert_eq!((t.tip, fold.runs, fold.messages, fold.title.as_deref()), (8, 2, 4, Some("ask r2")));
    assert_eq!(t.active_at, 1_001_000, "nothing has happened since");
    assert_eq!(settled(&a, "t").await, t, "once");
    let u = settled(&a, "u").await;
    assert_eq!(records(&a, &u.session_id).await, ["run_started/live"]);
    assert_eq!((transcript(&a, "t").await, transcript(&a, "u").await), before);
    let of_r1: Vec<Message> = before.0[2..].iter().map(|(_, _, message)| message.clone()).collect();
    assert_eq!(of_run(&a, "r1").await, of_r1);

    // A live run goes on in the hands of this version, whose first write to the thread is its end.
    schema.set_now(10_000_000).await;
    let token = a.claim("v2", Purpose::Drive).await.expect("its lease has run out").token;
    a.complete(&token, 0).await.expect("ended");
    let v = session(&a, "v").await.expect("a session");
    let expected = [
        "run_started/v1",
        "message/v1/-1",
        "run_ended/v1",
        "run_started/v2",
        "message/v2/-1",
        "run_ended/v2",
    ];
    assert_eq!(records(&a, &v.session_id).await, expected);
    let fold = v.fold.expect("a fold");
    assert_eq!((fold.seq, fold.runs, fold.messages, fold.title.as_deref()), (6, 2, 2, Some("ask v1")));

    let token = a.claim("live", Purpose::Drive).await.expect("its lease has run out").token;
    let finish = ending(&token, 1);
    a.store.finish(finish.clone()).await.expect("ended");
    let expected = ["run_started/live", "message/live/-1", "message/live/1", "run_ended/live"];
    assert_eq!(records(&a, &u.session_id).await, expected);
    assert_eq!(transcript(&a, "u").await, before.1);
    assert_eq!(session(&a, "u").await.expect("a session").active_at, 10_000_000);
    let rows = schema.client().await.query_one("SELECT count(*) FROM messages", &[]).await.expect("counted");
    assert_eq!(rows.get::<_, i64>(0), 0, "they are moved, not copied");
}

/// A run that the version before has accepted or ended is in its place among those of this one.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_of_the_version_before_goes_on() {
    let schema = Schema::new().await;
    let a = host(&schema.url, "a").await;
    let old = OldHost::beside(&schema).await;
    let token = a.accept("n1", "t").await.token;
    a.complete(&token, 1).await.expect("ended");
    let tip = session(&a, "t").await.expect("a session").tip;
    assert_eq!(tip, 2);

    old.accept("o1", "t").await;
    let moved = a.store.append_records(checkpoint("c1", tip)).await;
    let Err(RecordsError::Refused(RecordsRefusal::TipMoved { actual, .. })) = moved else {
        panic!("{moved:?}")
    };
    assert_eq!(
        (actual, session(&a, "t").await.expect("a session").tip),
        (3, 3),
        "what is refused is told truly"
    );
    a.store.append_records(checkpoint("c1", actual)).await.expect("added");
    old.say("o1", 0, 1, "old").await;
    assert_eq!(
        transcript(&a, "t").await,
        old.transcript("t").await,
        "as long as it lives both tell the same"
    );
    old.finish("o1").await;
    assert_eq!(of_run(&a, "o1").await.len(), 2);
    let token = a.accept("n2", "t").await.token;
    // Another takes it over and ends it.
    old.claim("n2").await;
    a.store.append(numbered(&token, 1)).await.expect_err("it was superseded");
    old.say("n2", 1, 1, "new").await;
    old.finish("n2").await;
    let t = settled(&a, "t").await;
    let expected = [
        "run_started/n1",
        "run_ended/n1",
        "run_started/o1",
        "c1",
        "message/o1/-1",
        "message/o1/1",
        "run_ended/o1",
        "run_started/n2",
        "message/n2/1",
        "run_ended/n2",
    ];
    assert_eq!(records(&a, &t.session_id).await, expected);
    let said: Vec<_> = transcript(&a, "t").await.into_iter().map(|(run, at, _)| (run, at)).collect();
    assert_eq!(said, [("o1".to_owned(), -1), ("o1".to_owned(), 1), ("n2".to_owned(), 1)]);
    assert_eq!((of_run(&a, "o1").await.len(), of_run(&a, "n2").await.len()), (2, 1));

    // A thread of which this version has not heard yet.
    old.accept("first", "fresh").await;
    assert_eq!(session(&a, "fresh").await, None);
    assert_eq!(transcript(&a, "fresh").await.len(), 1);
    old.finish("first").await;
    let token = a.accept("second", "fresh").await.token;
    a.complete(&token, 1).await.expect("ended");
    let fresh = session(&a, "fresh").await.expect("a session");
    let expected = [
        "run_started/first",
        "message/first/-1",
        "run_ended/first",
        "run_started/second",
        "run_ended/second",
    ];
    assert_eq!(records(&a, &fresh.session_id).await, expected);
    assert_eq!(fresh.fold.expect("a fold").title.as_deref(), Some("ask first"));
}

/// A message that the version before replaces is what that says, whatever its body was.
#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_message_has_no_body_elsewhere() {
    let schema = Schema::new().await;
    let a = host(&schema.url, "a").await;
    let old = OldHost::beside(&schema).await;
    let token = a.accept("r", "t").await.token;
    let id = session(&a, "t").await.expect("a session").session_id;
    let said = |ordinal: i64| {
        let pointer = Pointer::new(&id, &[u8::try_from(ordinal).expect("small"); 32], 1_000_000);
        let offloaded = Some(Offloaded { pointer, sum: "sum".to_owned() });
        NewMessage { offloaded, ..NewMessage::new(ordinal, Message::text("m", Role::Assistant, "stub")) }
    };
    let messages = vec![said(1), said(2)];
    a.store.append(Append { messages, barrier: Some(0), ..numbered(&token, 1) }).await.expect("written");
    old.claim("r").await;
    old.say("r", 2, 1, "whole").await;
    let rows = async || a.store.run_messages(&a.tenant, &RunId::new("r").expect("id")).await.expect("read");
    let told = rows().await;
    assert_eq!(told[0].message.content.as_deref(), Some("whole"));
    assert_eq!((told[0].pointer.clone(), told[1].pointer.is_some()), (None, true));
    old.finish("r").await;
    settled(&a, "t").await;
    assert_eq!(rows().await, told);
    assert_eq!(records_with_bodies(&a, &id).await, [("message/r/1", false), ("message/r/2", true)].map(own));
    assert_eq!(a.store.pointers(&id).await.expect("read").len(), 1);
}

fn own((id, elsewhere): (&str, bool)) -> (String, bool) {
    (id.to_owned(), elsewhere)
}

async fn records_with_bodies(host: &Host, session: &SessionId) -> Vec<(String, bool)> {
    let query = ReadRecords {
        session_id: session.clone(),
        after: 0,
        kinds: vec![outlast_core::ledger::Kind::Message],
        max_records: 99,
        max_bytes: usize::MAX,
    };
    let page = host.store.read_records(&query).await.expect("read");
    assert!(page.records.iter().all(StoredRecord::is_intact), "{page:?}");
    page.records.into_iter().map(|record| (record.id, record.pointer.is_some())).collect()
}
