//! Brings a database to the current version.

use deadpool_postgres::{Pool, Transaction};
use outlast_store::Entropy;

use super::sessions::make_sessions;
use super::steps::{STEPS, Step};
use crate::failure::{Failure, Tried};

/// Locked for the length of a migration, by schema. The number is arbitrary, and Outlast's.
const LOCK: &str = "SELECT pg_advisory_xact_lock(1332769908, hashtext(current_schema()::text))";

/// Makes sure that the tables are at least those of the current version, and answers with the deployment's id. A newer
/// version is fine: a step only adds, so that two versions can run side by side while hosts are replaced.
pub(crate) async fn prepare(pool: &Pool, entropy: &dyn Entropy) -> Tried<String> {
    migrate(pool, entropy, STEPS).await
}

pub(super) async fn migrate(pool: &Pool, entropy: &dyn Entropy, steps: &[Step]) -> Tried<String> {
    let mut client = pool.get().await?;
    let tx = client.transaction().await?;
    check(&tx).await?;
    // Of several hosts that start at once, one migrates; the others wait, however long it takes, and find it done.
    tx.batch_execute("SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0").await?;
    tx.batch_execute(LOCK).await?;
    // A step must not keep the hosts that work waiting for long behind what it waits for itself.
    tx.batch_execute("SET LOCAL lock_timeout = '10s'").await?;
    let known = version(&tx).await?;
    let found = known.as_ref().map_or(0, |(version, _)| *version);
    let missing: Vec<&Step> = steps.iter().filter(|step| step.version > found).collect();
    leave_alone_what_is_foreign(&tx, &missing, known.is_some()).await?;
    let deployment_id = match known {
        Some((_, id)) => id,
        None => make(&tx, entropy).await?,
    };
    for step in missing {
        tx.batch_execute(step.sql).await?;
        if step.makes_sessions {
            make_sessions(&tx, &deployment_id).await?;
        }
        tx.execute("UPDATE outlast_meta SET schema_version = $1", &[&step.version]).await?;
        tracing::info!(from = found, to = step.version, "migrated the database");
    }
    tx.commit().await?;
    Ok(deployment_id)
}

/// Refuses what Outlast cannot keep its promises with.
async fn check(tx: &Transaction<'_>) -> Tried<()> {
    let row = tx
        .query_one(
            "SELECT current_schema()::text, current_setting('server_encoding'), current_setting('synchronous_commit')",
            &[],
        )
        .await?;
    if row.try_get::<_, Option<&str>>(0)?.is_none() {
        return Err(Failure::Unsuitable(
            "the search path names no schema that there is: make it first (CREATE SCHEMA)".to_owned(),
        ));
    }
    let encoding: &str = row.try_get(1)?;
    if encoding != "UTF8" {
        return Err(Failure::Unsuitable(format!(
            "its encoding is {encoding}, which cannot hold what agents print: make a database with ENCODING 'UTF8'"
        )));
    }
    if row.try_get::<_, &str>(2)? == "off" {
        tracing::warn!(
            "synchronous_commit is off: what was shown to a viewer may be lost when the database crashes"
        );
    }
    Ok(())
}

/// The version of the tables and the deployment's id, where there are tables. Only the schema counts in which tables are
/// made: another one of the search path may hold another deployment's.
async fn version(tx: &Transaction<'_>) -> Tried<Option<(i32, String)>> {
    let there: bool = tx
        .query_one("SELECT to_regclass(format('%I.outlast_meta', current_schema())) IS NOT NULL", &[])
        .await?
        .try_get(0)?;
    if !there {
        return Ok(None);
    }
    match tx.query_opt("SELECT schema_version, deployment_id FROM outlast_meta", &[]).await? {
        Some(row) => Ok(Some((row.try_get(0)?, row.try_get(1)?))),
        None => Err(Failure::Damaged("outlast_meta is empty".to_owned())),
    }
}

/// Refuses a schema in which somebody else has a table that a step would make.
async fn leave_alone_what_is_foreign(tx: &Transaction<'_>, missing: &[&Step], has_data: bool) -> Tried<()> {
    let tables: Vec<&str> = missing.iter().flat_map(|step| step.tables).copied().collect();
    let foreign = tx
        .query_opt(
            "SELECT relname::text, current_schema()::text FROM pg_class \
             WHERE relnamespace = current_schema()::regnamespace AND relname::text = ANY ($1) LIMIT 1",
            &[&tables],
        )
        .await?;
    let Some(row) = foreign else { return Ok(()) };
    let (table, schema): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
    let what_to_do = if has_data {
        "rename it (ALTER TABLE … RENAME TO …), or move Outlast's tables to a schema of their own"
    } else {
        "give Outlast a schema of its own (CREATE SCHEMA outlast, and ?options=-c%20search_path%3Doutlast at the end of \
         the URL)"
    };
    Err(Failure::Unsuitable(format!(
        "the schema {schema:?} has a table {table:?} that Outlast did not make: {what_to_do}"
    )))
}

/// Makes the first table, and the deployment's id.
async fn make(tx: &Transaction<'_>, entropy: &dyn Entropy) -> Tried<String> {
    let id = entropy.uuid();
    tx.batch_execute(
        "CREATE TABLE outlast_meta (schema_version integer NOT NULL, deployment_id text NOT NULL)",
    )
    .await?;
    tx.execute("INSERT INTO outlast_meta VALUES (0, $1)", &[&id]).await?;
    Ok(id)
}
