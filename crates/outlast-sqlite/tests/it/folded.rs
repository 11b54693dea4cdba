//! What is kept of a ledger, and what becomes of it under another version.

use std::path::Path;

use outlast_core::ledger::Record;
use outlast_core::ledger::{Decoded, Fold, SessionStopped, StopReason};
use outlast_core::transcript::{Message, Role};
use outlast_store::conformance::Host;
use outlast_store::{Accept, NewMessage, NewRecord, StoredRecord};
use rusqlite::Connection;

use super::support::{checkpoint, completion, host, ledger, records};

fn raw(dir: &Path, sql: &str) {
    Connection::open(dir.join("outlast.db")).unwrap().execute_batch(sql).unwrap();
}

async fn add(host: &Host, record: NewRecord) {
    host.store.append_records(records(host, "t", vec![record])).await.unwrap();
}

async fn turn(host: &Host, run: &str) {
    let messages = NewMessage::input(vec![Message::text("q", Role::User, "Hello")]);
    let token = host.accept_with(Accept { messages, ..host.request(run, "t") }).await.token;
    host.store.finish(completion(&token, 1)).await.unwrap();
}

fn folded(records: &[StoredRecord]) -> Fold {
    let mut fold = Fold::empty();
    for record in records {
        match record.decode().unwrap() {
            Decoded::Known(known) => fold.apply(record.seq, record.at, &known),
            Decoded::Skipped => fold.pass(record.seq, record.at),
        }
    }
    fold
}

/// The fold is that of the records, or there is none.
async fn check(host: &Host, there: bool) {
    let (head, records) = ledger(host, "t").await;
    assert_eq!(head.fold, there.then(|| folded(&records)));
}

#[tokio::test]
async fn of_another_version_is_folded_again_with_the_next_record() {
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path(), "here");
    turn(&host, "r1").await;
    add(&host, checkpoint("c1")).await;
    check(&host, true).await;
    for (n, fold) in ["NULL", r#"'{"version":99,"seq":5,"at":1}'"#, "'nonsense'"].into_iter().enumerate() {
        raw(dir.path(), &format!("UPDATE sessions SET fold = {fold}"));
        check(&host, false).await;
        match n {
            0 => add(&host, checkpoint("c2")).await,
            1 => turn(&host, "r2").await,
            _ => {
                add(
                    &host,
                    NewRecord::new("s", Record::SessionStopped(SessionStopped { reason: StopReason::User })),
                )
                .await
            }
        }
        check(&host, true).await;
    }
    // One of this version that another one has not kept in step.
    raw(dir.path(), "UPDATE sessions SET fold = json_set(fold, '$.seq', 2)");
    check(&host, false).await;
    add(&host, checkpoint("c3")).await;
    check(&host, true).await;
}

/// Records of a newer version: what may be passed over is; what may not keeps nobody from adding to the ledger.
#[tokio::test]
async fn records_of_a_newer_version() {
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path(), "here");
    turn(&host, "r1").await;
    let newer = |id: &str, skip: bool| {
        let sum = outlast_core::ledger::checksum("novel", id, "{}");
        format!(
            "INSERT INTO records (id, session, at, kind, skip, record_id, sum, body) \
             SELECT session << 32 | (tip + 1), session, 7, 'novel', {skip}, '{id}', '{sum}', '{{}}' FROM sessions; \
             UPDATE sessions SET tip = tip + 1;"
        )
    };
    raw(dir.path(), &newer("n1", true));
    check(&host, false).await;
    add(&host, checkpoint("c1")).await;
    check(&host, true).await;
    raw(dir.path(), &newer("n2", false));
    add(&host, checkpoint("c2")).await;
    turn(&host, "r2").await;
    let (head, found) = ledger(&host, "t").await;
    assert_eq!((head.fold, found.len()), (None, 10));
    // A program that knows the record goes on from there.
    let sum = outlast_core::ledger::checksum("barrier", "n2", r#"{"epoch":1}"#);
    raw(
        dir.path(),
        &format!(
            "UPDATE records SET kind = 'barrier', body = '{{\"epoch\":1}}', sum = '{sum}' WHERE record_id = 'n2'"
        ),
    );
    add(&host, checkpoint("c3")).await;
    check(&host, true).await;
}
