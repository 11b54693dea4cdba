//! Opening a database: making its tables, or finding somebody else's.

use std::sync::Arc;
use std::time::Duration;

use outlast_postgres::PostgresStore;
use outlast_store::{Store, StoreError};

use crate::support::{Cluster, Load, OldHost, Schema, config, connect, eventually, host, server, within};

/// What is wrong, and what to do, where opening is useless.
#[track_caller]
fn unusable(opened: Result<PostgresStore, StoreError>) -> String {
    match opened {
        Err(StoreError::Unusable { message }) => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_hosts_that_open_an_empty_schema_at_once_one_makes_the_tables() {
    for _ in 0..3 {
        let schema = Schema::new().await;
        let barrier = Arc::new(tokio::sync::Barrier::new(12));
        let opening: Vec<_> = (0..12)
            .map(|n| {
                let (barrier, config) = (Arc::clone(&barrier), config(&schema.url, &format!("h{n}")));
                tokio::spawn(async move {
                    barrier.wait().await;
                    PostgresStore::open(config)
                        .await
                        .expect("opened")
                        .deployment_id()
                        .await
                        .expect("answered")
                })
            })
            .collect();
        let mut ids = Vec::new();
        for opening in opening {
            ids.push(opening.await.expect("it ends"));
        }
        ids.dedup();
        assert_eq!(ids.len(), 1, "one deployment: {ids:?}");
        let rows = schema.client().await.query("SELECT * FROM outlast_meta", &[]).await.expect("rows");
        assert_eq!(rows.len(), 1);
    }
}

/// A migration may take longer than anybody waits for a lock otherwise.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_waits_for_a_migration_that_takes_long() {
    let schema = Schema::new().await;
    let migrating = schema.client().await;
    migrating
        .batch_execute("BEGIN; SELECT pg_advisory_xact_lock(1332769908, hashtext(current_schema()::text))")
        .await
        .expect("locked");
    let opening = tokio::spawn(PostgresStore::open(config(&schema.url, "a")));
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert!(!opening.is_finished(), "it waits");
    migrating.batch_execute("COMMIT").await.expect("released");
    within(Duration::from_secs(10), "it goes on", opening).await.expect("it ends").expect("opened");
}

/// A later version has added to the tables. This one goes on with those that are open, and opens more.
#[tokio::test(flavor = "multi_thread")]
async fn a_newer_version_migrates_under_hosts_that_work() {
    let schema = Schema::new().await;
    let a = host(&schema.url, "a").await;
    let load = Load::begin(&a, "r", 8).await;
    let newer = schema.client().await;
    for step in [
        "ALTER TABLE runs ADD COLUMN later text, ADD COLUMN counted bigint NOT NULL DEFAULT 7",
        "ALTER TABLE events ADD COLUMN later text; CREATE INDEX later ON events (at)",
        "ALTER TABLE messages ADD COLUMN later text; ALTER TABLE specs ADD COLUMN later jsonb",
        "ALTER TABLE instances ADD COLUMN later text; CREATE TABLE something (new text)",
        "UPDATE outlast_meta SET schema_version = 99",
    ] {
        let until = load.written() + 50;
        eventually("appends go on", Duration::from_secs(60), async || load.written() >= until).await;
        newer.batch_execute(step).await.expect("migrated");
    }
    let until = load.written() + 50;
    eventually("appends go on", Duration::from_secs(60), async || load.written() >= until).await;
    assert_eq!(load.away(), 0, "nobody noticed");
    load.check(&a).await;
    let b = host(&schema.url, "b").await;
    let token = b.accept("new", "new").await.token;
    b.complete(&token, 1).await.expect("ended");
    assert_eq!(a.record("new").await, b.record("new").await);
    let version = newer.query_one("SELECT schema_version FROM outlast_meta", &[]).await.expect("version");
    assert_eq!(version.get::<_, i32>(0), 99, "it stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_somebody_else_are_left_alone() {
    for table in ["events", "runs", "messages"] {
        let schema = Schema::new().await;
        let client = schema.client().await;
        client.batch_execute(&format!("CREATE TABLE {table} (title text)")).await.expect("made");
        let said = unusable(PostgresStore::open(config(&schema.url, "a")).await);
        for word in [&format!("{table:?}"), &schema.name, "CREATE SCHEMA", "search_path"] {
            assert!(said.contains(word), "{word}: {said}");
        }
        let made = client.query("SELECT to_regclass('outlast_meta')::text", &[]).await.expect("answered");
        assert_eq!(made[0].get::<_, Option<&str>>(0), None, "nothing was made");
    }
}

/// Of a database that has the tables of an older version, too: nothing is migrated.
#[tokio::test(flavor = "multi_thread")]
async fn tables_of_somebody_else_that_a_later_version_would_make() {
    let schema = Schema::new().await;
    OldHost::first(&schema).await;
    let client = schema.client().await;
    client.batch_execute("CREATE TABLE sessions (cookie text)").await.expect("made");
    let said = unusable(PostgresStore::open(config(&schema.url, "a")).await);
    assert!(said.contains("\"sessions\"") && said.contains("RENAME"), "{said}");
    let version = client.query_one("SELECT schema_version FROM outlast_meta", &[]).await.expect("version");
    assert_eq!(version.get::<_, i32>(0), 2);
    client.batch_execute("DROP TABLE sessions").await.expect("gone");
    host(&schema.url, "a").await;
}

/// Tables are made in the first schema of the search path, whatever the others hold.
#[tokio::test(flavor = "multi_thread")]
async fn each_schema_is_a_deployment() {
    let (one, other) = (Schema::new().await, Schema::new().await);
    let first = host(&one.url, "a").await;
    first.accept("r", "r").await;
    let both = format!("{}%2C{}", other.url, one.name);
    let second = host(&both, "a").await;
    assert_ne!(
        first.store.deployment_id().await.expect("answered"),
        second.store.deployment_id().await.expect("answered")
    );
    assert_eq!(second.store.run(&second.tenant, &"r".parse().expect("id")).await.expect("answered"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_does_not_exist() {
    let url = format!("{}?options=-c%20search_path%3Dnowhere", server());
    let said = unusable(PostgresStore::open(config(&url, "a")).await);
    assert!(said.contains("search path") && said.contains("CREATE SCHEMA"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_may_not_make_tables() {
    let schema = Schema::new().await;
    let role = format!("role_{}", schema.name);
    let admin = connect(&server()).await;
    admin
        .batch_execute(&format!("CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {} TO {role}", schema.name))
        .await
        .expect("role");
    let url = schema.url.replace("//postgres@", &format!("//{role}@"));
    let said = unusable(PostgresStore::open(config(&url, "a")).await);
    assert!(said.contains("permission denied") && said.contains("CREATE"), "{said}");
    // With what the documents ask for, all works.
    admin.batch_execute(&format!("GRANT CREATE ON SCHEMA {} TO {role}", schema.name)).await.expect("granted");
    let a = host(&url, "a").await;
    let token = a.accept("r", "r").await.token;
    a.complete(&token, 1).await.expect("ended");
    drop(a);
    schema.client().await.batch_execute(&format!("DROP OWNED BY {role} CASCADE")).await.expect("dropped");
    admin.batch_execute(&format!("DROP ROLE {role}")).await.expect("dropped");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_cannot_hold_what_agents_print() {
    let cluster = Cluster::start();
    let admin = connect(&cluster.url()).await;
    admin
        .batch_execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
        .await
        .expect("made");
    let url = cluster.url().replace("/postgres", "/latin").replace("//latin", "//postgres");
    let said = unusable(PostgresStore::open(config(&url, "a")).await);
    assert!(said.contains("LATIN1") && said.contains("UTF8"), "{said}");
}
