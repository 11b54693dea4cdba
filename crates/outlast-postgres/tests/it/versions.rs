//! What the store says of itself.

use outlast_postgres::{PostgresConfig, PostgresStore};
use outlast_store::{Entropy, Ports, Store, SystemEntropy};

use crate::support::Schema;

#[tokio::test]
async fn of_tables_and_server() {
    let schema = Schema::new().await;
    let config = PostgresConfig::new(&schema.url, SystemEntropy.owner_id(), Ports::system());
    let store = PostgresStore::open(config).await.expect("store");
    let client = schema.client().await;
    let server: String = client.query_one("SHOW server_version", &[]).await.expect("server").get(0);
    let tables: i32 =
        client.query_one("SELECT schema_version FROM outlast_meta", &[]).await.expect("row").get(0);
    let versions = store.versions().await.expect("versions");
    assert_eq!((versions.schema, versions.server), (tables, server));
    client.execute("UPDATE outlast_meta SET schema_version = 99", &[]).await.expect("a newer host");
    assert_eq!(store.versions().await.expect("versions").schema, 99);
    store.close().await;
}
