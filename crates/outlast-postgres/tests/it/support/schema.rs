//! A schema of its own for each test, on a server that all share.

use std::time::Duration;

use outlast_store::{Entropy, SystemEntropy};
use tokio_postgres::{Client, NoTls};

/// Where PostgreSQL is.
pub fn server() -> String {
    std::env::var("OUTLAST_TEST_POSTGRES")
        .unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/postgres".to_owned())
}

/// A schema, dropped with what is in it.
pub struct Schema {
    pub name: String,
    /// The URL by which a store finds it.
    pub url: String,
}

impl Schema {
    pub async fn new() -> Schema {
        let name = format!("outlast_test_{}", SystemEntropy.hex_id());
        let admin = connect(&server()).await;
        admin.batch_execute(&format!("CREATE SCHEMA {name}")).await.expect("schema");
        let url = format!("{}?options=-c%20search_path%3D{name}", server());
        Schema { name, url }
    }

    /// A connection whose statements mean this schema.
    pub async fn client(&self) -> Client {
        connect(&self.url).await
    }

    /// Stops the database's clock, as Outlast reads it in this schema, at this time.
    pub async fn set_now(&self, millis: u64) {
        self.client()
            .await
            .batch_execute(&format!(
                "CREATE OR REPLACE FUNCTION outlast_now() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT {millis}::bigint'"
            ))
            .await
            .expect("clock");
    }

    /// Locks a run's row in a transaction that stays open.
    pub async fn lock(&self, run: &str) -> RowLock {
        RowLock::of(&self.url, run).await
    }
}

/// A transaction that has locked a run's row.
pub struct RowLock {
    client: Client,
    watch: Client,
    pid: i32,
}

impl RowLock {
    pub async fn of(url: &str, run: &str) -> RowLock {
        let (client, watch) = (connect(url).await, connect(url).await);
        let pid = client.query_one("SELECT pg_backend_pid()", &[]).await.expect("pid").get(0);
        client.batch_execute("BEGIN").await.expect("begun");
        let locked = client.query("SELECT 1 FROM runs WHERE run_id = $1 FOR UPDATE", &[&run]).await;
        assert_eq!(locked.expect("locked").len(), 1);
        RowLock { client, watch, pid }
    }

    /// How many wait for it, or for one that waits for it.
    pub async fn waiting(&self) -> usize {
        let row = self
            .watch
            .query_one(
                "WITH RECURSIVE behind AS (\
                     SELECT pid FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)) \
                     UNION SELECT a.pid FROM pg_stat_activity a JOIN behind b ON b.pid = ANY (pg_blocking_pids(a.pid))\
                 ) SELECT count(*) FROM behind",
                &[&self.pid],
            )
            .await
            .expect("answered");
        usize::try_from(row.get::<_, i64>(0)).expect("few")
    }

    pub async fn release(self) {
        self.client.batch_execute("ROLLBACK").await.expect("released");
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let name = self.name.clone();
        // The test's runtime may be on its way down.
        let dropped = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
            runtime.block_on(async {
                let admin = connect(&server()).await;
                // A test that failed may have left something locked.
                let drop = format!("SET lock_timeout = '10s'; DROP SCHEMA {name} CASCADE");
                let _ = admin.batch_execute(&drop).await;
            });
            runtime.shutdown_timeout(Duration::from_secs(1));
        });
        let _ = dropped.join();
    }
}

pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap_or_else(|error| {
        panic!("PostgreSQL is needed for this test ({error}): start it, or name another with OUTLAST_TEST_POSTGRES")
    });
    tokio::spawn(async move {
        let _ = connection.await;
    });
    client
}
