//! Sessions: what several connections, and several versions, can do to them at once.

use std::time::Duration;

use outlast_core::decide::{AcceptRefusal, DeleteRefusal};
use outlast_core::ledger::{Kind, Record, SessionStopped, StopReason};
use outlast_core::{Tenant, ThreadId};
use outlast_store::conformance::Host;
use outlast_store::{
    AcceptError, AcquireLease, AppendRecords, DeleteError, Entropy, LeaseOn, NewRecord, ReadRecords,
    SessionHead, SessionName, SystemEntropy,
};

use crate::support::{Schema, eventually, host};

fn thread(id: &str) -> ThreadId {
    ThreadId::new(id).expect("id")
}

async fn session(host: &Host, id: &str) -> SessionHead {
    let name = SessionName::Thread(thread(id));
    host.store.session(&host.tenant, &name).await.expect("answered").expect("a session")
}

fn stops(ids: impl IntoIterator<Item = String>) -> AppendRecords {
    let stopped = || Record::SessionStopped(SessionStopped { reason: StopReason::User });
    AppendRecords {
        tenant: Tenant::default(),
        thread_id: thread("t"),
        expected_tip: None,
        barrier: None,
        lease: None,
        pin: None,
        create: false,
        records: ids.into_iter().map(|id| NewRecord::new(id, stopped())).collect(),
    }
}

async fn stop(host: &Host, id: &str) -> u64 {
    host.store.append_records(stops([id.to_owned()])).await.expect("added")[0].seq
}

async fn turn(host: &Host, run: &str, thread: &str) {
    let token = host.accept(run, thread).await.token;
    host.complete(&token, 1).await.expect("ended");
}

/// Of a run that is accepted and a deletion that begins, one comes first, and the other sees it.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_and_a_deletion_at_once() {
    let schema = Schema::new().await;
    let (a, b) = (host(&schema.url, "a").await, host(&schema.url, "b").await);
    let mut accepted = 0;
    for round in 0..60 {
        let (id, run) = (format!("t{round}"), format!("r{round}"));
        turn(&a, &format!("before{round}"), &id).await;
        let (first, second, name) = (a.clone(), b.clone(), SessionName::Thread(thread(&id)));
        let request = a.request(&run, &id);
        // Each has a head start in turn.
        let wait = move |mine: bool| Duration::from_micros(if mine { 300 * (round % 7) } else { 0 });
        let accepting = tokio::spawn(async move {
            tokio::time::sleep(wait(round % 2 == 0)).await;
            first.store.accept(request).await
        });
        let deleting = tokio::spawn(async move {
            tokio::time::sleep(wait(round % 2 == 1)).await;
            second.store.begin_delete(&second.tenant, &name, None).await
        });
        match (accepting.await.expect("it ends"), deleting.await.expect("it ends")) {
            (Ok(_), Err(DeleteError::Refused(DeleteRefusal::Live { run_id, .. }))) => {
                assert_eq!(run_id.as_str(), run);
                accepted += 1;
            }
            (Err(AcceptError::Refused(AcceptRefusal::ThreadDeleted { .. })), Ok(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!((1..60).contains(&accepted), "{accepted} of 60 were accepted: neither always comes first");
}

/// Of many that ask for one lease at once, one gets it; afterwards one of the others.
#[tokio::test(flavor = "multi_thread")]
async fn one_lease_for_many() {
    let schema = Schema::new().await;
    let (a, b) = (host(&schema.url, "a").await, host(&schema.url, "b").await);
    turn(&a, "r", "t").await;
    let on = LeaseOn::Session(session(&a, "t").await.session_id);
    for epoch in 1..20 {
        let asking: Vec<_> = (0..8)
            .map(|n| {
                let host = if n % 2 == 0 { a.clone() } else { b.clone() };
                let (owner, nonce) = (host.owner.clone(), SystemEntropy.nonce());
                let wish = AcquireLease { on: on.clone(), owner, nonce, lasts: Duration::from_secs(60) };
                tokio::spawn(async move { host.store.acquire_lease(&wish).await })
            })
            .collect();
        let mut granted = Vec::new();
        for asked in asking {
            granted.extend(asked.await.expect("it ends"));
        }
        assert_eq!(granted.iter().map(|lease| lease.token.epoch).collect::<Vec<_>>(), [epoch]);
        a.store.release_lease(&granted[0].token, None).await.expect("released");
    }
}

/// Whoever asks for the pins waits for a write that relies on one, though it has run out meanwhile: what it writes is to be
/// found afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn a_pin_in_use_is_waited_for() {
    let schema = Schema::new().await;
    let a = host(&schema.url, "a").await;
    schema.set_now(1_000_000).await;
    let pin = SystemEntropy.nonce();
    a.store.pin(&pin, &a.owner, Duration::from_secs(1)).await.expect("answered").expect("pinned");
    let writing = schema.client().await;
    writing.batch_execute("BEGIN; SELECT 1 FROM pins FOR UPDATE").await.expect("locked");
    schema.set_now(2_000_000).await;
    let asking = tokio::spawn({
        let a = a.clone();
        async move { a.store.pins().await.expect("answered") }
    });
    let again = tokio::spawn({
        let (a, pin) = (a.clone(), pin.clone());
        async move { a.store.pin(&pin, &a.owner, Duration::from_secs(1)).await.expect("answered") }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!asking.is_finished() && !again.is_finished());
    writing.batch_execute("ROLLBACK").await.expect("released");
    assert_eq!(asking.await.expect("it ends"), []);
    assert_eq!(again.await.expect("it ends"), None, "its time is looked at once it is its turn");
}

/// What another version has kept of the ledger, or what it has added to it, keeps nobody from adding more.
#[tokio::test(flavor = "multi_thread")]
async fn a_fold_of_another_version() {
    let schema = Schema::new().await;
    let a = host(&schema.url, "a").await;
    turn(&a, "r", "t").await;
    let known = session(&a, "t").await.fold.expect("a fold");
    let other = schema.client().await;
    let fold = async |json: &str| {
        other.execute("UPDATE sessions SET fold = $1", &[&json]).await.expect("written");
    };
    let foreign = async |seq: i64, kind: &str, skip: bool| {
        let sql = "INSERT INTO records SELECT session, $1, 7, $2, $2, $3, 'sum', '{}' FROM sessions";
        other.execute(sql, &[&seq, &kind, &skip]).await.expect("written");
        other.execute("UPDATE sessions SET tip = $1", &[&seq]).await.expect("written");
    };
    for newer in [r#"{"version":2}"#, "nonsense", &known.to_json().replace("\"seq\":2", "\"seq\":1")] {
        fold(newer).await;
        assert_eq!(session(&a, "t").await.fold, None, "{newer}");
        let seq = stop(&a, newer).await;
        let fold = session(&a, "t").await.fold.expect("folded anew");
        assert_eq!((fold.seq, fold.runs, fold.stopped.map(|stopped| stopped.seq)), (seq, 1, Some(seq)));
    }
    foreign(6, "of_no_matter", true).await;
    assert_eq!((stop(&a, "7").await, session(&a, "t").await.fold.map(|fold| fold.seq)), (7, Some(7)));
    foreign(8, "of_matter", false).await;
    for seq in [9, 10] {
        assert_eq!((stop(&a, &seq.to_string()).await, session(&a, "t").await.fold), (seq, None));
    }
    turn(&a, "r2", "t").await;
    assert_eq!((session(&a, "t").await.tip, session(&a, "t").await.fold), (12, None));
    // A program that can read it takes it up again; here, once it is of another kind.
    other
        .execute("UPDATE records SET kind = 'barrier', body = '{\"epoch\":1}' WHERE seq = 8", &[])
        .await
        .expect("written");
    fold(r#"{"version":0,"gaveUp":2}"#).await;
    stop(&a, "13").await;
    let fold = session(&a, "t").await.fold.expect("a fold");
    assert_eq!((fold.seq, fold.runs), (13, 2));
}

/// Pages are bounded as they are asked for, however the store reads them.
#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_long_ledger() {
    let schema = Schema::new().await;
    let a = host(&schema.url, "a").await;
    turn(&a, "r", "t").await;
    let id = session(&a, "t").await.session_id;
    let more = "INSERT INTO records SELECT session, n, 7, 'm' || n, CASE WHEN n % 10 = 0 THEN 'barrier' ELSE 'run_ended' END, \
                true, 'sum', '{\"epoch\":1}' FROM sessions, generate_series(3, 2500) AS n";
    let other = schema.client().await;
    other.batch_execute(more).await.expect("written");
    other.batch_execute("UPDATE sessions SET tip = 2500").await.expect("written");
    let page = async |after, kinds: &[Kind], max_records, max_bytes| {
        let kinds = kinds.to_vec();
        let query = ReadRecords { session_id: id.clone(), after, kinds, max_records, max_bytes };
        let page = a.store.read_records(&query).await.expect("read");
        assert_eq!(page.tip, 2500);
        let seqs: Vec<u64> = page.records.iter().map(|record| record.seq).collect();
        assert!(seqs.is_sorted_by(|a, b| a < b));
        (seqs.len(), seqs.last().copied(), page.more)
    };
    let all = usize::MAX;
    assert_eq!(page(0, &[], all, all).await, (2500, Some(2500), false));
    assert_eq!(page(0, &[], 2500, all).await, (2500, Some(2500), false));
    assert_eq!(page(2, &[], 1500, all).await, (1500, Some(1502), true));
    assert_eq!(page(0, &[Kind::Barrier], all, all).await, (250, Some(2500), false));
    assert_eq!(page(0, &[Kind::Barrier], 249, all).await, (249, Some(2490), true));
    // Each has 11 bytes.
    assert_eq!(page(2, &[], all, 11).await, (1, Some(3), true));
    assert_eq!(page(2, &[], all, 12).await, (2, Some(4), true));
    assert_eq!(page(2, &[], all, 11 * 1000).await, (1000, Some(1002), true));
    assert_eq!(page(2, &[], all, 11 * 1000 + 1).await, (1001, Some(1003), true));
    assert_eq!(page(2, &[], all, 11 * 2498).await, (2498, Some(2500), false));
}

/// How many records a statement looks at does not depend on how many there are, also before the database has counted them.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_ledger_is_not_read_for_its_end() {
    let schema = Schema::new().await;
    let other = schema.client().await;
    let named = |name: &str| format!("{}&application_name={}_{name}", schema.url, schema.name);
    // A connection has told what it has looked at once it is gone.
    let close = async |host: Host| {
        host.store.close().await;
        drop(host);
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE $1 || '%'";
        let gone =
            async || other.query_one(sql, &[&schema.name]).await.expect("counted").get::<_, i64>(0) == 0;
        eventually("its connections are gone", Duration::from_secs(10), gone).await;
        let sql = "SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes \
                   WHERE relname = 'records' AND schemaname = current_schema()";
        other.query_one(sql, &[]).await.expect("counted").get::<_, i64>(0)
    };
    let a = host(&named("a"), "a").await;
    turn(&a, "r", "t").await;
    other.batch_execute("ALTER TABLE records SET (autovacuum_enabled = false)").await.expect("set");
    let fill = "INSERT INTO records SELECT session, n, 7, 'message/r/' || n, 'message', false, 'sum', \
                '{\"id\":\"m\",\"role\":\"user\",\"content\":\"x\"}' FROM sessions, generate_series(10, 30000) AS n";
    other.batch_execute(fill).await.expect("written");
    other.batch_execute("UPDATE sessions SET tip = 30000, fold = NULL").await.expect("written");
    stop(&a, "folds anew").await;
    let before = close(a).await;
    assert!(before >= 29_991, "the folding is counted: {before}");

    let b = host(&named("b"), "b").await;
    let page = b.store.thread_messages(&b.tenant, &thread("t"), None, 100).await.expect("read");
    assert_eq!((page.messages.len(), page.before), (100, Some(29_901)));
    let append = stops((0..200).map(|n| format!("s{n}")));
    for added in [true, false] {
        let appended = b.store.append_records(append.clone()).await.expect("answered");
        assert!(appended.iter().all(|record| record.appended == added));
    }
    let read = close(b).await - before;
    assert!((300..3_000).contains(&read), "{read} entries of indexes were read");
}

/// A deletion goes on only once a run has ended that a host of the version before has accepted in the middle of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_the_version_before_on_a_thread_that_is_deleted() {
    let schema = Schema::new().await;
    let a = host(&schema.url, "a").await;
    turn(&a, "r", "t").await;
    let name = SessionName::Thread(thread("t"));
    let id = a.store.begin_delete(&a.tenant, &name, None).await.expect("begun").session_id;
    let old = crate::support::OldHost::beside(&schema).await;
    old.accept("late", "t").await;
    let delete = async || {
        while a.store.delete_rows(&id, 3).await.expect("swept").more {}
        a.store.end_delete(&id).await.expect("answered");
        session(&a, "t").await.deleted_at.is_some()
    };
    assert!(!delete().await, "a run lives");
    schema.client().await.batch_execute("UPDATE runs SET lease_until = 0").await.expect("lapsed");
    let token = a.claim("late", outlast_core::run::Purpose::Drive).await.expect("granted").token;
    a.complete(&token, 0).await.expect("a run ends, whatever becomes of its thread");
    assert_eq!(session(&a, "t").await.tip, 2, "nothing is added");
    eventually("it is gone", Duration::from_secs(5), delete).await;
    let left = schema.client().await.query("SELECT 1 FROM runs UNION ALL SELECT 1 FROM messages", &[]).await;
    assert_eq!(left.expect("read").len(), 0);
}
