//! What statements need besides a connection.

use std::sync::{Mutex, PoisonError};

use deadpool_postgres::Transaction;
use outlast_core::RunId;
use outlast_store::{Entropy, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql};

use crate::failure::{Failure, Tried};

/// How often a transaction that lost a race is tried again.
const TRIES: u32 = 10;

/// A value of a statement.
pub(super) type Value<'a> = &'a (dyn ToSql + Sync);

/// A transaction that may write.
pub(crate) struct Tx<'a> {
    tx: Transaction<'a>,
    pub(super) entropy: &'a dyn Entropy,
    /// The deployment, of which a session's id is made.
    pub(super) deployment: &'a str,
    touched: Mutex<Vec<RunId>>,
}

/// How a transaction ended.
pub(crate) enum Next<T, E> {
    /// This is its answer, and these runs have changed.
    Done(Result<T, E>, Vec<RunId>),
    /// It lost a race and is to be tried again.
    Again,
}

impl<'a> Tx<'a> {
    pub(crate) fn new(tx: Transaction<'a>, entropy: &'a dyn Entropy, deployment: &'a str) -> Self {
        Tx { tx, entropy, deployment, touched: Mutex::default() }
    }

    /// Whoever watches the run is woken once the transaction is committed.
    pub(super) fn touch(&self, run_id: &RunId) {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner).push(run_id.clone());
    }

    pub(super) async fn all(&self, sql: &str, values: &[Value<'_>]) -> Tried<Vec<Row>> {
        let statement = self.tx.prepare_cached(sql).await?;
        Ok(self.tx.query(&statement, values).await?)
    }

    pub(super) async fn maybe(&self, sql: &str, values: &[Value<'_>]) -> Tried<Option<Row>> {
        let statement = self.tx.prepare_cached(sql).await?;
        Ok(self.tx.query_opt(&statement, values).await?)
    }

    pub(super) async fn one(&self, sql: &str, values: &[Value<'_>]) -> Tried<Row> {
        let statement = self.tx.prepare_cached(sql).await?;
        Ok(self.tx.query_one(&statement, values).await?)
    }

    pub(super) async fn write(&self, sql: &str, values: &[Value<'_>]) -> Tried<u64> {
        let statement = self.tx.prepare_cached(sql).await?;
        Ok(self.tx.execute(&statement, values).await?)
    }

    /// Commits what was decided; a refusal has written nothing and is rolled back.
    pub(crate) async fn end<T, E: From<StoreError>>(
        self,
        outcome: Tried<Result<T, E>>,
        tries: &mut u32,
    ) -> Next<T, E> {
        let failure = match outcome {
            Ok(Err(refusal)) => return Next::Done(Err(refusal), Vec::new()),
            Ok(Ok(value)) => match self.tx.commit().await {
                Ok(()) => {
                    let touched = self.touched.into_inner().unwrap_or_else(PoisonError::into_inner);
                    return Next::Done(Ok(value), touched);
                }
                Err(error) => Failure::from(error),
            },
            // Dropped, the transaction is rolled back.
            Err(failure) => failure,
        };
        *tries += 1;
        if failure.lost_a_race() && *tries < TRIES {
            return Next::Again;
        }
        Next::Done(Err(failure.told().into()), Vec::new())
    }
}

/// A number as PostgreSQL stores it. Its integers are signed; no number here comes near the difference.
pub(super) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A stored number, none of which is negative.
pub(super) fn uint(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// A duration in whole milliseconds.
pub(super) fn millis(time: std::time::Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// A column.
pub(super) fn get<'r, T: FromSql<'r>>(row: &'r Row, column: usize) -> Tried<T> {
    Ok(row.try_get(column)?)
}

/// A column that holds a number which is never negative.
pub(super) fn number(row: &Row, column: usize) -> Tried<u64> {
    get::<i64>(row, column).map(uint)
}

/// Plain data as JSON.
pub(super) fn to_json<T: serde::Serialize>(value: &T) -> Tried<String> {
    serde_json::to_string(value).map_err(|error| Failure::Damaged(format!("a value has no JSON: {error}")))
}

/// Stored JSON, or text, as what it was written from.
pub(super) fn parsed<T, E: std::fmt::Display>(what: &str, result: Result<T, E>) -> Tried<T> {
    result.map_err(|error| Failure::Damaged(format!("a stored {what} cannot be read: {error}")))
}

/// A stored word.
pub(super) fn word<T>(what: &str, text: &str, parse: impl Fn(&str) -> Option<T>) -> Tried<T> {
    parse(text).ok_or_else(|| Failure::Damaged(format!("{text:?} is no {what}")))
}
