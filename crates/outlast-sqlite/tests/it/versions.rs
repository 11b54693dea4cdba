//! Databases of other versions.

use std::path::Path;

use outlast_core::{RunId, ThreadId};
use outlast_store::Append;
use rusqlite::Connection;

use super::support::{append_of, host, try_open};

/// The version that this program makes.
const CURRENT: i64 = 4;

/// Makes the database what version 1 would have made of it.
fn downgrade(dir: &Path) {
    let raw = Connection::open(dir.join("outlast.db")).unwrap();
    raw.execute_batch(
        "BEGIN;
         DROP TABLE sessions; DROP TABLE records; DROP TABLE condemned; DROP TABLE leases; DROP TABLE pins;
         DROP INDEX runs_unledgered; ALTER TABLE runs DROP COLUMN ledgered;
         DROP INDEX events_blob; ALTER TABLE events DROP COLUMN blob_key; ALTER TABLE events DROP COLUMN blob_size;
         DROP INDEX messages_blob; ALTER TABLE messages DROP COLUMN blob_key;
         ALTER TABLE messages DROP COLUMN blob_size; ALTER TABLE messages DROP COLUMN sum;
         DROP INDEX instances_thread;
         DROP TABLE hosts;
         DROP INDEX instances_due; DROP INDEX instances_there; DROP INDEX runs_ended; DROP INDEX runs_ended_events;
         ALTER TABLE runs DROP COLUMN expired; ALTER TABLE runs DROP COLUMN stalls;
         ALTER TABLE runs DROP COLUMN stalled_at;
         ALTER TABLE instances DROP COLUMN tenant; ALTER TABLE instances DROP COLUMN thread_id;
         ALTER TABLE instances DROP COLUMN lent; ALTER TABLE instances DROP COLUMN keep_alive;
         ALTER TABLE instances DROP COLUMN reclaim_at; ALTER TABLE instances DROP COLUMN reclaim_failed;
         ALTER TABLE instances DROP COLUMN reclaim_error; ALTER TABLE instances DROP COLUMN reclaim_owner;
         ALTER TABLE instances DROP COLUMN reclaim_until;
         DROP INDEX runs_sessions; ALTER TABLE runs DROP COLUMN kind;
         UPDATE meta SET schema_version = 1;
         COMMIT;",
    )
    .unwrap();
}

fn version(dir: &Path) -> i64 {
    let raw = Connection::open(dir.join("outlast.db")).unwrap();
    raw.query_row("SELECT schema_version FROM meta", [], |row| row.get(0)).unwrap()
}

async fn old_database(dir: &Path) {
    let host = host(dir, "old");
    let token = host.accept("r1", "t").await.token;
    let append = Append { agent_session: Some("session".to_owned()), ..append_of(&token, 1, 10) };
    host.store.append(append).await.unwrap();
    host.complete(&token, 2).await.unwrap();
    host.store.close().await;
    drop(host);
    downgrade(dir);
}

#[tokio::test]
async fn an_older_one_is_migrated_with_all_that_it_holds() {
    let dir = tempfile::tempdir().unwrap();
    old_database(dir.path()).await;
    let host = host(dir.path(), "new");
    assert_eq!(version(dir.path()), CURRENT);
    assert_eq!(host.log("r1").await.len(), 4);
    host.accept("r2", "t").await;
    let (thread, before) = (ThreadId::new("t").unwrap(), RunId::new("r2").unwrap());
    let found = host.store.last_agent_session(&host.tenant, &thread, "command", &before).await.unwrap();
    assert_eq!(found.as_deref(), Some("session"), "what the new column holds was taken from what there was");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_that_want_to_migrate_at_once_all_start() {
    let dir = tempfile::tempdir().unwrap();
    old_database(dir.path()).await;
    let path = dir.path();
    std::thread::scope(|scope| {
        for n in 0..4 {
            scope.spawn(move || drop(host(path, &format!("owner {n}"))));
        }
    });
    assert_eq!(version(path), CURRENT);
}

#[tokio::test]
async fn not_migrated_while_others_use_it() {
    let dir = tempfile::tempdir().unwrap();
    old_database(dir.path()).await;
    let living = host(dir.path(), "living");
    living.accept("r2", "t").await;
    downgrade(dir.path());
    let error = try_open(dir.path(), "new").unwrap_err();
    assert!(!error.is_transient(), "{error}");
    let message = error.to_string();
    assert!(
        message.contains("version 1") && message.contains("stop them, then run any command"),
        "{message}"
    );
    assert_eq!(version(dir.path()), 1);
    drop(living);
    try_open(dir.path(), "new").unwrap();
    assert_eq!(version(dir.path()), CURRENT);
}

#[tokio::test]
async fn a_newer_one_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    host(dir.path(), "old").store.close().await;
    let raw = Connection::open(dir.path().join("outlast.db")).unwrap();
    raw.execute_batch("UPDATE meta SET schema_version = 99").unwrap();
    drop(raw);
    let error = try_open(dir.path(), "here").unwrap_err();
    let message = error.to_string();
    assert!(
        !error.is_transient() && message.contains("version 99") && message.contains(&CURRENT.to_string()),
        "{message}"
    );
    assert_eq!(version(dir.path()), 99);
}
