//! A database that version 3 has left: its transcripts become ledgers, and nobody sees a difference.

use std::path::Path;
use std::time::Duration;

use outlast_core::decide::SessionState;
use outlast_core::ledger::{Fold, SessionId};
use outlast_core::run::{Purpose, Status};
use outlast_core::transcript::{Message, Role};
use outlast_core::{RunId, Tenant, ThreadId};
use outlast_store::conformance::Host;
use outlast_store::{AppendRecords, ListSessions, NewMessage, SessionName, StoredRecord};
use rusqlite::Connection;

use super::support::{append_of, checkpoint, completion, host, ledger, records};

/// Made by the program of version 3: two runs that have ended on the thread `t`, in the order r2, r1, and a live one, r3;
/// one on a thread of the same name of another tenant; and one on the thread `quiet`.
const V3: &str = include_str!("v3.sql");

/// A message as version 3 shows it.
type Shown = (String, i64, Message);

fn version_3(dir: &Path) -> Connection {
    let raw = Connection::open(dir.join("outlast.db")).unwrap();
    raw.execute_batch(V3).unwrap();
    raw
}

/// What version 3 shows of the thread.
fn shown_before(raw: &Connection, tenant: &str, thread: &str) -> Vec<Shown> {
    let mut statement = raw
        .prepare(
            "SELECT r.run_id, m.ordinal, m.json FROM runs r JOIN messages m ON m.run = r.run \
             WHERE r.tenant = ?1 AND r.thread_id = ?2 ORDER BY r.run, m.ordinal",
        )
        .unwrap();
    let rows = statement.query_map((tenant, thread), |row| {
        Ok((row.get(0)?, row.get(1)?, serde_json::from_str(&row.get::<_, String>(2)?).unwrap()))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

fn of(host: &Host, tenant: &str) -> Host {
    Host { tenant: Tenant(tenant.to_owned()), ..host.clone() }
}

fn id(thread: &str) -> ThreadId {
    ThreadId::new(thread).unwrap()
}

/// What this version shows of the thread, and of each of its runs.
async fn shown(host: &Host, thread: &str) -> Vec<Shown> {
    let page = host.store.thread_messages(&host.tenant, &id(thread), None, usize::MAX).await.unwrap();
    assert_eq!(page.before, None);
    let mut runs: Vec<RunId> = page.messages.iter().map(|row| row.run_id.clone()).collect();
    runs.dedup();
    let mut each = Vec::new();
    for run in runs {
        each.extend(host.store.run_messages(&host.tenant, &run).await.unwrap());
    }
    assert_eq!(each, page.messages);
    each.into_iter().map(|row| (row.run_id.as_str().to_owned(), row.ordinal, row.message)).collect()
}

fn ids(records: &[StoredRecord]) -> Vec<&str> {
    records.iter().map(|record| record.id.as_str()).collect()
}

#[tokio::test]
async fn its_sessions_are_there_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let raw = version_3(dir.path());
    let threads = [("", "t"), ("you", "t"), ("", "quiet")];
    let before = threads.map(|(tenant, thread)| shown_before(&raw, tenant, thread));
    assert_eq!(before.each_ref().map(Vec::len), [9, 2, 1]);
    let new = host(dir.path(), "new");
    for ((tenant, thread), before) in threads.iter().zip(&before) {
        assert_eq!(shown(&of(&new, tenant), thread).await, *before, "{tenant} {thread}");
    }
    let query = ListSessions { limit: 9, ..ListSessions::default() };
    let mut listed = new.store.list_sessions(&query).await.unwrap();
    listed.sort_by_key(|session| session.created_at);
    let deployment = new.store.deployment_id().await.unwrap();
    for (session, (tenant, thread)) in listed.iter().zip(threads) {
        assert_eq!((session.tenant.as_str(), session.thread_id.as_str()), (tenant, thread));
        assert_eq!(session.session_id, SessionId::of(&deployment, &session.tenant, &session.thread_id));
        assert_eq!((session.state, session.tip, session.deleted_at), (SessionState::Active, 0, None));
        assert_eq!(session.fold, Some(Fold::empty()));
        let times: (i64, i64) = raw
            .query_row(
                "SELECT min(started_at), max(max(started_at, ifnull(finished_at, 0))) FROM runs \
                 WHERE tenant = ?1 AND thread_id = ?2",
                (tenant, thread),
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .unwrap();
        assert_eq!((session.created_at as i64, session.active_at as i64), times);
    }
    // Nobody has come back to them, so retention finds them; but for the one with a live run.
    let query = ListSessions { idle_for: Some(Duration::from_secs(3600)), ..query };
    let idle = new.store.list_sessions(&query).await.unwrap();
    assert_eq!(idle.len(), 2);
    assert!(idle.iter().all(|session| (session.tenant.as_str(), session.thread_id.as_str()) != ("", "t")));
}

#[tokio::test]
async fn its_transcripts_become_ledgers() {
    let dir = tempfile::tempdir().unwrap();
    let raw = version_3(dir.path());
    let before = shown_before(&raw, "", "t");
    let new = host(dir.path(), "new");
    let name = SessionName::Thread(id("t"));
    let migrated = new.store.session(&new.tenant, &name).await.unwrap().unwrap();
    let settled = new.store.settle_session(&new.tenant, &id("t")).await.unwrap().unwrap();
    let found = ledger(&new, "t").await.1;
    let expected = [
        "run_started/r2",
        "message/r2/-2",
        "message/r2/-1",
        "message/r2/2",
        "message/r2/4",
        "message/r2/10",
        "run_ended/r2",
        "run_started/r1",
        "message/r1/-1",
        "message/r1/2",
        "run_ended/r1",
        "run_started/r3",
    ];
    assert_eq!(ids(&found), expected);
    assert_eq!(found[0].body, r#"{"runId":"r2","agent":"demo","model":"m","title":"Fix it, please"}"#);
    assert!(found[10].body.contains("it broke"), "{:?}", found[10]);
    assert!(V3.contains(&found[5].body), "as it was stored");
    let fold = settled.fold.clone().unwrap();
    assert_eq!((fold.seq, fold.runs, fold.messages), (12, 3, 7));
    assert_eq!((fold.title.as_deref(), settled.tip), (Some("Fix it, please"), 12));
    assert_eq!(settled.active_at, migrated.active_at, "to be looked at makes no thread young");
    assert_eq!(shown(&new, "t").await, before);
    // What is settled stays as it is, and what belongs to others too.
    assert_eq!(new.store.settle_session(&new.tenant, &id("t")).await.unwrap(), Some(settled));
    assert_eq!(ledger(&of(&new, "you"), "t").await.1, []);

    // The live run ends as any other.
    let token = new.claim("r3", Purpose::Drive).await.unwrap().token;
    new.store.append(append_of(&token, 2, 10)).await.unwrap();
    let mut end = completion(&token, 3);
    end.append.messages = vec![NewMessage::new(2, Message::text("a", Role::Assistant, "I am done"))];
    let ended = new.store.finish(end).await.unwrap().run;
    assert_eq!((ended.status, ended.sealed), (Status::Completed, true));
    let found = ledger(&new, "t").await.1;
    assert_eq!(ids(&found[12..]), ["message/r3/-1", "message/r3/2", "run_ended/r3"]);
    let after = shown(&new, "t").await;
    assert_eq!(after[..8], before[..8]);
    assert_eq!(after[8].2.content.as_deref(), Some("I am done"));
    new.accept("r4", "t").await;
    assert_eq!(ids(&ledger(&new, "t").await.1)[15..], ["run_started/r4"]);
    let left: i64 = raw
        .query_row(
            "SELECT count(*) FROM messages m JOIN runs r ON r.run = m.run WHERE r.tenant = '' AND r.thread_id = 't'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(left, 0, "what is in the ledger is nowhere else");
}

/// Whoever writes first to a thread gives it what was left before: what comes after comes after.
#[tokio::test]
async fn whoever_writes_first_settles() {
    let dir = tempfile::tempdir().unwrap();
    drop(version_3(dir.path()));
    let new = host(dir.path(), "new");
    new.accept("e2", "quiet").await;
    let expected = ["run_started/e1", "message/e1/-1", "run_ended/e1", "run_started/e2"];
    assert_eq!(ids(&ledger(&new, "quiet").await.1), expected);
    // The live run of version 3 ends, and nobody has settled before.
    let token = new.claim("r3", Purpose::Drive).await.unwrap().token;
    new.store.finish(completion(&token, 2)).await.unwrap();
    let found = ledger(&new, "t").await.1;
    assert_eq!(found.len(), 15);
    assert_eq!(
        ids(&found)[10..],
        ["run_ended/r1", "run_started/r3", "message/r3/-1", "message/r3/2", "run_ended/r3"]
    );
    let you = of(&new, "you");
    let refused = AppendRecords { expected_tip: Some(9), ..records(&you, "t", vec![checkpoint("c")]) };
    you.store.append_records(refused).await.unwrap_err();
    let expected = ["run_started/o1", "message/o1/-1", "message/o1/2", "run_ended/o1"];
    assert_eq!(ids(&ledger(&you, "t").await.1), expected, "due, whatever became of the request");
}

/// A session goes with what was never given to its ledger, and gets nothing of it any more.
#[tokio::test]
async fn deleted_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let raw = version_3(dir.path());
    let new = of(&host(dir.path(), "new"), "you");
    let hour = Some(Duration::from_secs(3600));
    let begun = new.store.begin_delete(&new.tenant, &SessionName::Thread(id("t")), hour).await.unwrap();
    assert_eq!(begun.state, SessionState::Deleting);
    new.store.settle_session(&new.tenant, &id("t")).await.unwrap();
    assert_eq!(ledger(&new, "t").await.1, []);
    let mut rows = 0;
    loop {
        let swept = new.store.delete_rows(&begun.session_id, 2).await.unwrap();
        rows += swept.rows;
        if !swept.more {
            break;
        }
        // From the first row on, a log is gone as a whole.
        let page = new.store.read(&new.tenant, &RunId::new("o1").unwrap(), outlast_core::Seq(0), 9, 9).await;
        assert!(page.is_ok_and(|page| page.events.is_empty()));
    }
    // Three events, two messages, the spec and the run.
    assert_eq!(rows, 7);
    new.store.end_delete(&begun.session_id).await.unwrap();
    let (messages, events): (i64, i64) = raw
        .query_row("SELECT (SELECT count(*) FROM messages), (SELECT count(*) FROM events)", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert_eq!((messages, events), (10, 13));
    assert_eq!(shown(&of(&new, ""), "t").await.len(), 9);
}
