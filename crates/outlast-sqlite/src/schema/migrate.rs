//! Brings a database to the current version.

use std::path::Path;
use std::time::Duration;

use outlast_store::{Entropy, StoreError};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use super::steps::{CURRENT, STEPS, Step};
use crate::connection::pause;
use crate::failure::{Failure, Tried, unavailable};
use crate::files::{ProcessLock, Upgrade};

/// How long to wait for others that found the same old version and want to migrate it too.
const MIGRATION_WAIT: Duration = Duration::from_secs(2);
const MIGRATION_STEP: Duration = Duration::from_millis(20);

/// What the file is.
enum Found {
    /// Nothing is in it.
    Empty,
    /// Tables of this version.
    Version(i64),
    /// Tables that Outlast did not make.
    Foreign,
}

/// Makes sure that the tables are those of the current version, and answers with the deployment's id.
pub(crate) fn prepare(
    connection: &mut Connection,
    file: &Path,
    lock: &ProcessLock,
    entropy: &dyn Entropy,
) -> Result<String, StoreError> {
    let told = |failure: Failure| failure.told(file);
    let mut waited = Duration::ZERO;
    loop {
        match found(connection).map_err(told)? {
            // One transaction, which looks again: of two processes that find the file empty, one makes the tables.
            Found::Empty => create(connection, entropy).map_err(told)?,
            Found::Version(CURRENT) => break,
            Found::Version(version) if version > CURRENT => {
                return Err(StoreError::Unusable {
                    message: format!(
                        "the database {} is of version {version}, and this outlast knows only versions up to \
                         {CURRENT}: use the newer outlast that has written it",
                        file.display()
                    ),
                });
            }
            Found::Version(version) => match lock.try_alone() {
                Ok(Upgrade::Alone) => {
                    let migrated = migrate(connection, version);
                    let shared = lock.share();
                    migrated.map_err(told)?;
                    shared
                        .map_err(|error| unavailable(format!("cannot unlock the data directory: {error}")))?;
                    tracing::info!(from = version, to = CURRENT, "migrated the database");
                }
                Ok(Upgrade::Others) if waited < MIGRATION_WAIT => {
                    // Two processes that both hold the lock shared would otherwise keep each other from it.
                    let stepped = lock.step_aside();
                    pause(MIGRATION_STEP);
                    waited += MIGRATION_STEP;
                    stepped
                        .and_then(|()| lock.share())
                        .map_err(|error| unavailable(format!("cannot lock the data directory: {error}")))?;
                }
                Ok(Upgrade::Others) => {
                    return Err(StoreError::Unusable {
                        message: format!(
                            "the database {} is of version {version} and must be migrated to {CURRENT}, but other \
                             outlast processes use it: stop them, then run any command",
                            file.display()
                        ),
                    });
                }
                Err(error) => return Err(unavailable(format!("cannot lock the data directory: {error}"))),
            },
            Found::Foreign => {
                return Err(StoreError::Unusable {
                    message: format!(
                        "{} is not a database of Outlast: choose another data directory, or move the file aside",
                        file.display()
                    ),
                });
            }
        }
    }
    // Usually so already; a tool may have changed it.
    write_ahead(connection).map_err(told)?;
    connection
        .query_row("SELECT deployment_id FROM meta", [], |row| row.get(0))
        .map_err(|error| told(error.into()))
}

fn found(connection: &Connection) -> Tried<Found> {
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables == 0 {
        return Ok(Found::Empty);
    }
    let ours: bool = connection.query_row(
        "SELECT count(*) = 1 FROM pragma_table_info('meta') WHERE name = 'schema_version'",
        [],
        |row| row.get(0),
    )?;
    if !ours {
        return Ok(Found::Foreign);
    }
    let version: Option<i64> =
        connection.query_row("SELECT schema_version FROM meta", [], |row| row.get(0)).optional()?;
    version.map(Found::Version).ok_or_else(|| Failure::Damaged("its version is missing".to_owned()))
}

fn create(connection: &mut Connection, entropy: &dyn Entropy) -> Tried<()> {
    write_ahead(connection)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let Found::Empty = found(&transaction)? {
        for step in STEPS {
            take(&transaction, step)?;
        }
        transaction.execute("INSERT INTO meta VALUES (?1, ?2)", (CURRENT, entropy.uuid()))?;
    }
    transaction.commit()?;
    Ok(())
}

fn take(transaction: &Connection, step: &Step) -> Tried<()> {
    transaction.execute_batch(step.sql)?;
    step.then.map_or(Ok(()), |then| then(transaction))
}

/// Each step commits with its version, so that a process that dies in between leaves a database of some version.
fn migrate(connection: &mut Connection, from: i64) -> Tried<()> {
    for step in STEPS.iter().filter(|step| step.version > from) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        take(&transaction, step)?;
        transaction.execute("UPDATE meta SET schema_version = ?1", [step.version])?;
        transaction.commit()?;
    }
    Ok(())
}

/// Switches to write-ahead logging, which the file remembers. Two processes that do so at once make one of them fail
/// without asking the busy handler.
fn write_ahead(connection: &Connection) -> Tried<()> {
    let mut tries = 0;
    loop {
        match connection.query_row("PRAGMA journal_mode=WAL", [], |row| row.get::<_, String>(0)) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Err(error)
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) && tries < 200 => {}
            Err(error) => return Err(error.into()),
            Ok(_) if tries < 200 => {}
            Ok(mode) => return Err(Failure::Damaged(format!("its journal mode stays {mode}"))),
        }
        tries += 1;
        pause(MIGRATION_STEP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_in_order() {
        assert!(STEPS.iter().map(|step| step.version).eq(1..=CURRENT));
    }
}
