//! Brings a database to the current version.

use deadpool_postgres::Pool;
use outlast_store::{Entropy, StoreError};

use super::steps::{CURRENT, STEPS};
use crate::failure::{Failure, Tried};

/// Locked for the length of a migration, by schema. The number is arbitrary, and Outlast's.
const LOCK: &str = "SELECT pg_advisory_xact_lock(1332769908, hashtext(current_schema()::text))";

/// Makes sure that the tables are at least those of the current version, and answers with the deployment's id. A newer
/// version is fine: a step only adds, so that two versions can run side by side while hosts are replaced.
pub(crate) async fn prepare(pool: &Pool, entropy: &dyn Entropy) -> Result<String, StoreError> {
    let prepared = prepare_once(pool, entropy).await;
    prepared.map_err(|failure| failure.told())
}

async fn prepare_once(pool: &Pool, entropy: &dyn Entropy) -> Tried<String> {
    let mut client = pool.get().await?;
    let tx = client.transaction().await?;
    // Of several hosts that start at once, one migrates; the others wait and find it done.
    tx.batch_execute(LOCK).await?;
    let there: bool =
        tx.query_one("SELECT to_regclass('outlast_meta') IS NOT NULL", &[]).await?.try_get(0)?;
    let (found, deployment_id) = if there {
        let row = tx.query_one("SELECT schema_version, deployment_id FROM outlast_meta", &[]).await?;
        (row.try_get::<_, i32>(0)?, row.try_get::<_, String>(1)?)
    } else {
        let foreign: bool = tx.query_one("SELECT to_regclass('runs') IS NOT NULL", &[]).await?.try_get(0)?;
        if foreign {
            return Err(Failure::Damaged(
                "its schema has a table \"runs\" that Outlast did not make; give Outlast a database or a schema of its \
                 own"
                    .to_owned(),
            ));
        }
        let id = entropy.uuid();
        tx.batch_execute(
            "CREATE TABLE outlast_meta (schema_version integer NOT NULL, deployment_id text NOT NULL)",
        )
        .await?;
        tx.execute("INSERT INTO outlast_meta VALUES (0, $1)", &[&id]).await?;
        (0, id)
    };
    for step in STEPS.iter().filter(|step| step.version > found) {
        tx.batch_execute(step.sql).await?;
        tx.execute("UPDATE outlast_meta SET schema_version = $1", &[&step.version]).await?;
    }
    tx.commit().await?;
    if found < CURRENT {
        tracing::info!(from = found, to = CURRENT, "migrated the database");
    }
    Ok(deployment_id)
}
