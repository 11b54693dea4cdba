//! A database of an older version. The step after the last is one of the test.

use std::sync::Arc;

use outlast_core::OwnerId;
use outlast_store::{Entropy, Ports, Store, SystemEntropy};

use super::migrate::migrate;
use super::steps::{STEPS, Step};
use crate::connect::{Target, pool};
use crate::{PostgresConfig, PostgresStore};

const NEXT: &str =
    "ALTER TABLE runs ADD COLUMN next text NOT NULL DEFAULT ''; CREATE TABLE next (run bigint)";

fn steps() -> Vec<Step> {
    let next = STEPS.len() as i32 + 1;
    let known = STEPS.iter().map(|step| Step { ..*step });
    known.chain([Step { version: next, sql: NEXT, tables: &["next"], makes_sessions: false }]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_version_is_migrated_once_by_the_first_of_many() {
    let server = std::env::var("OUTLAST_TEST_POSTGRES")
        .unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/postgres".to_owned());
    let name = format!("outlast_test_{}", SystemEntropy.hex_id());
    let admin =
        pool(&Target::parse(&server).expect("url"), 2).expect("pool").get().await.expect("PostgreSQL");
    admin.batch_execute(&format!("CREATE SCHEMA {name}")).await.expect("schema");
    let url = format!("{server}?options=-c%20search_path%3D{name}");

    let open = async |owner: &str| {
        let owner = OwnerId::new(owner).expect("id");
        PostgresStore::open(PostgresConfig::new(url.as_str(), owner, Ports::system())).await.expect("opened")
    };
    let old = open("old").await;
    let id = old.deployment_id().await.expect("answered");
    let new = Arc::new(pool(&Target::parse(&url).expect("url"), 8).expect("pool"));
    let hosts: Vec<_> = (0..8)
        .map(|_| {
            let new = Arc::clone(&new);
            tokio::spawn(async move { migrate(&new, &SystemEntropy, &steps()).await.expect("migrated") })
        })
        .collect();
    for host in hosts {
        assert_eq!(host.await.expect("it ends"), id, "it is the same deployment");
    }
    let client = new.get().await.expect("client");
    let version = client.query_one("SELECT schema_version FROM outlast_meta", &[]).await.expect("version");
    assert_eq!(version.get::<_, i32>(0), STEPS.len() as i32 + 1);
    // The version before goes on, and opens.
    for store in [old, open("older").await] {
        assert_eq!(store.deployment_id().await.expect("answered"), id);
    }
    admin.batch_execute(&format!("DROP SCHEMA {name} CASCADE")).await.expect("dropped");
}
