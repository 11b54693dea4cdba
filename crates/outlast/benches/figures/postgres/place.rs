//! A schema for one measurement.

use std::time::Duration;

use outlast::core::OwnerId;
use outlast::postgres::{PostgresConfig, PostgresStore};
use outlast::store::{Entropy, Ports, SystemEntropy};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, Config, NoTls};

/// A schema of its own on the server that `OUTLAST_TEST_POSTGRES` names, else on that of this machine. Dropped with what
/// is in it.
pub struct Schema {
    name: String,
    pub url: String,
    runtime: Runtime,
    client: Client,
}

fn server() -> String {
    std::env::var("OUTLAST_TEST_POSTGRES")
        .unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/postgres".to_owned())
}

impl Schema {
    /// None where no server can be reached, which is printed.
    pub fn new(measurement: &str) -> Option<Schema> {
        match Schema::make() {
            Ok(schema) => Some(schema),
            Err(error) => {
                let why =
                    std::error::Error::source(&error).map_or_else(String::new, |why| format!(": {why}"));
                println!("{measurement}: skipped: {error}{why}; OUTLAST_TEST_POSTGRES names a server");
                None
            }
        }
    }

    fn make() -> Result<Schema, tokio_postgres::Error> {
        let name = format!("outlast_bench_{}", SystemEntropy.hex_id());
        let between = if server().contains('?') { '&' } else { '?' };
        let url = format!("{}{between}options=-c%20search_path%3D{name}", server());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
        let client = runtime.block_on(connect(&url))?;
        runtime.block_on(client.batch_execute(&format!("CREATE SCHEMA {name}")))?;
        Ok(Schema { name, url, runtime, client })
    }

    /// Does this beside what is measured.
    pub fn ask<T>(&self, work: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>) -> T {
        self.runtime.block_on(work(&self.client)).expect("an answer")
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let drop = format!("SET client_min_messages = error; DROP SCHEMA {} CASCADE", self.name);
        self.ask(async |client| client.batch_execute(&drop).await);
    }
}

/// A connection by hand.
pub async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let mut config: Config = url.parse()?;
    config.connect_timeout(Duration::from_secs(2));
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// A store as a host has it, and the host's name.
pub async fn host(url: &str, adapt: impl FnOnce(&mut PostgresConfig)) -> (PostgresStore, OwnerId) {
    let owner = SystemEntropy.owner_id();
    let mut config = PostgresConfig::new(url, owner.clone(), Ports::system());
    adapt(&mut config);
    (PostgresStore::open(config).await.expect("open"), owner)
}
