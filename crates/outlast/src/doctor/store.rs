//! The store.

use std::path::Path;
use std::time::Duration;

use outlast_sqlite::{SqliteConfig, SqliteStore};
use outlast_store::{Ports, Store, StoreError};

use super::check::Check;
use super::directory::DirectoryFacts;
use crate::StoreChoice;

/// How long a database may take to answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// Opens the store as every command does, which migrates one of an older version.
pub async fn check(choice: &StoreChoice, directory: &DirectoryFacts, ports: &Ports) -> Check {
    let opened = match choice {
        StoreChoice::Embedded => {
            if let Some(hindrance) = directory.hindrance() {
                return Check::unknown("store", hindrance);
            }
            if !directory.exists() {
                return Check::ok("store", "SQLite in the data directory; the first run makes it");
            }
            embedded(&directory.path, ports).await
        }
        #[cfg(feature = "postgres")]
        StoreChoice::Postgres { url, .. } => {
            tokio::select! {
                biased;
                opened = postgres(url, ports) => opened,
                () = ports.clock.sleep(PATIENCE) => {
                    let message = format!("it does not answer within {} s", PATIENCE.as_secs());
                    Err(StoreError::Unavailable { message })
                }
            }
        }
    };
    match opened {
        Ok(finding) => Check::ok("store", finding),
        Err(error) => {
            let advice = match error.is_transient() {
                true => "runs wait for it meanwhile; agents that work go on",
                false => "nothing works until this is mended",
            };
            Check::problem("store", error.to_string(), advice)
        }
    }
}

async fn embedded(data_dir: &Path, ports: &Ports) -> Result<String, StoreError> {
    let store = SqliteStore::open(SqliteConfig::new(data_dir, ports.entropy.owner_id(), ports.clone()))?;
    let deployment = store.deployment_id().await;
    store.close().await;
    let version = SqliteStore::SCHEMA_VERSION;
    Ok(format!("SQLite, tables of version {version}, deployment {}", deployment?))
}

#[cfg(feature = "postgres")]
async fn postgres(url: &str, ports: &Ports) -> Result<String, StoreError> {
    use outlast_postgres::{PostgresConfig, PostgresStore};

    let mut config = PostgresConfig::new(url, ports.entropy.owner_id(), ports.clone());
    config.notifications = false;
    let store = PostgresStore::open(config).await?;
    let (versions, deployment) = (store.versions().await, store.deployment_id().await);
    store.close().await;
    let (versions, deployment) = (versions?, deployment?);
    Ok(format!(
        "PostgreSQL {}, tables of version {}, deployment {deployment}",
        versions.server, versions.schema
    ))
}
