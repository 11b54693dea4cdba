//! What statements need besides the database.

use std::cell::RefCell;
use std::ops::Deref;

use outlast_core::RunId;
pub(super) use outlast_core::duration::millis;
use outlast_core::ledger::Pointer;
use outlast_store::{Entropy, Ports};
use rusqlite::{Connection, Row};

use crate::failure::{Failure, Tried};
use crate::files::Owners;

/// A snapshot of the database and the time at which it is looked at.
pub(crate) struct View<'a> {
    pub(super) db: &'a Connection,
    owners: &'a Owners,
    /// Milliseconds since 1970.
    pub(super) wall: u64,
    /// Milliseconds since the boot `boot_id`.
    pub(super) boot: u64,
    pub(super) boot_id: String,
}

impl<'a> View<'a> {
    /// Reads the clocks.
    pub(crate) fn now(db: &'a Connection, owners: &'a Owners, ports: &Ports) -> Self {
        let clock = &ports.clock;
        View { db, owners, wall: clock.wall_ms(), boot: clock.boot_ms(), boot_id: clock.boot_id() }
    }

    /// How much longer a lease runs, in milliseconds: 0 where it was granted in another boot, has run out, or its
    /// owner is dead.
    pub(super) fn lease_remaining(&self, owner: &str, boot_id: &str, until: u64) -> u64 {
        let remaining = if boot_id == self.boot_id { until.saturating_sub(self.boot) } else { 0 };
        if remaining > 0 && self.owners.is_alive(owner) { remaining } else { 0 }
    }

    /// What time it is, in milliseconds since 1970.
    pub(crate) fn wall(&self) -> u64 {
        self.wall
    }

    /// Whether the process with this owner id is alive.
    pub(super) fn is_alive(&self, owner: &str) -> bool {
        self.owners.is_alive(owner)
    }
}

/// A transaction that may write.
pub(crate) struct Tx<'a> {
    view: View<'a>,
    pub(super) entropy: &'a dyn Entropy,
    /// The deployment's id.
    pub(super) deployment: &'a str,
    touched: RefCell<Vec<RunId>>,
}

impl<'a> Tx<'a> {
    /// Begins with nothing touched.
    pub(crate) fn new(view: View<'a>, entropy: &'a dyn Entropy, deployment: &'a str) -> Self {
        Tx { view, entropy, deployment, touched: RefCell::default() }
    }

    /// Whoever watches the run is woken once the transaction is committed.
    pub(super) fn touch(&self, run_id: &RunId) {
        self.touched.borrow_mut().push(run_id.clone());
    }

    /// The runs that were touched.
    pub(crate) fn into_touched(self) -> Vec<RunId> {
        self.touched.into_inner()
    }
}

impl<'a> Deref for Tx<'a> {
    type Target = View<'a>;
    fn deref(&self) -> &View<'a> {
        &self.view
    }
}

/// A number as SQLite stores it. Its integers are signed; no number here comes near the difference.
pub(super) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A stored number, none of which is negative.
pub(super) fn uint(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Plain data as JSON.
pub(super) fn to_json<T: serde::Serialize>(value: &T) -> Tried<String> {
    serde_json::to_string(value).map_err(|error| Failure::Damaged(format!("a value has no JSON: {error}")))
}

/// Stored JSON, or text, as what it was written from.
pub(super) fn parsed<T, E: std::fmt::Display>(what: &str, result: Result<T, E>) -> Tried<T> {
    result.map_err(|error| Failure::Damaged(format!("a stored {what} cannot be read: {error}")))
}

/// What the columns `blob_key` and `blob_size` hold of a pointer.
pub(super) fn stored_pointer(pointer: Option<&Pointer>) -> (Option<&str>, Option<i64>) {
    pointer.map(|pointer| (pointer.key.as_str(), int(pointer.size))).unzip()
}

/// The pointer in the column `blob_key` and the one after it.
pub(super) fn pointer(row: &Row<'_>, column: usize) -> Tried<Option<Pointer>> {
    let key: Option<String> = row.get(column)?;
    Ok(match key {
        None => None,
        Some(key) => Some(Pointer { key, size: uint(row.get(column + 1)?) }),
    })
}
