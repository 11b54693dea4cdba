//! The part of a run's row on which fenced writes are decided.

use outlast_core::decide::{self, WriteFacts};
use outlast_core::run::{Cancel, CancelReason, Phase, Status};
use outlast_core::{Nonce, RunId, Seq};
use rusqlite::OptionalExtension;

use super::context::{View, parsed, uint};
use crate::failure::{Failure, Tried};

pub(super) struct Head {
    pub(super) run: i64,
    pub(super) phase: Phase,
    pub(super) facts: WriteFacts,
    pub(super) instance_id: Option<String>,
    pub(super) lease: Option<StoredLease>,
}

/// A lease as it was written.
pub(super) struct StoredLease {
    pub(super) owner: String,
    pub(super) boot_id: String,
    pub(super) until: u64,
}

impl Head {
    pub(super) fn find(view: &View<'_>, run_id: &RunId) -> Tried<Option<Head>> {
        let mut statement = view.db.prepare_cached(
            "SELECT run, status, phase, epoch, lease_nonce, tail, last_batch, cancel_reason, cancel_at, instance_id, \
             lease_owner, lease_boot, lease_until FROM runs WHERE run_id = ?1",
        )?;
        let head = statement.query_row([run_id.as_str()], |row| Ok(read(row))).optional()?;
        head.transpose()
    }

    /// For how many milliseconds nobody has watched the run.
    pub(super) fn detached_for(&self, view: &View<'_>) -> Tried<Option<u64>> {
        let (started_at, latest): (i64, Option<i64>) = view
            .db
            .prepare_cached(
                "SELECT r.started_at, (SELECT max(p.until) FROM presence p WHERE p.run = r.run) \
                 FROM runs r WHERE r.run = ?1",
            )?
            .query_row([self.run], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let ended = self.facts.status.is_terminal();
        let since = decide::detached_since(uint(started_at), latest.map(uint), view.wall, ended);
        Ok(since.map(|since| view.wall - since))
    }
}

fn read(row: &rusqlite::Row<'_>) -> Tried<Head> {
    let cancel_reason: Option<String> = row.get(7)?;
    let cancel = match cancel_reason {
        None => None,
        Some(text) => Some(Cancel { reason: cancel_of(&text)?, at: uint(row.get(8)?) }),
    };
    let lease = match row.get::<_, Option<String>>(10)? {
        None => None,
        Some(owner) => Some(StoredLease { owner, boot_id: row.get(11)?, until: uint(row.get(12)?) }),
    };
    Ok(Head {
        run: row.get(0)?,
        phase: phase_of(row.get_ref(2)?)?,
        facts: WriteFacts {
            status: status_of(row.get_ref(1)?)?,
            epoch: uint(row.get(3)?),
            nonce: row.get::<_, Option<String>>(4)?.map(Nonce::from_stored),
            tail: Seq(uint(row.get(5)?)),
            last_batch: row.get::<_, Option<String>>(6)?.map(Nonce::from_stored),
            cancel,
        },
        instance_id: row.get(9)?,
        lease,
    })
}

fn word<T>(what: &str, text: &str, parse: impl Fn(&str) -> Option<T>) -> Tried<T> {
    parse(text).ok_or_else(|| Failure::Damaged(format!("{text:?} is no {what}")))
}

pub(super) fn status_of(value: rusqlite::types::ValueRef<'_>) -> Tried<Status> {
    word("status", parsed("status", value.as_str())?, Status::parse)
}

pub(super) fn phase_of(value: rusqlite::types::ValueRef<'_>) -> Tried<Phase> {
    word("phase", parsed("phase", value.as_str())?, Phase::parse)
}

pub(super) fn cancel_of(text: &str) -> Tried<CancelReason> {
    word("reason to cancel", text, CancelReason::parse)
}

pub(super) fn end_of(text: &str) -> Tried<outlast_core::run::EndReason> {
    word("reason to end", text, outlast_core::run::EndReason::parse)
}

pub(super) fn on_disconnect_of(text: &str) -> Tried<outlast_core::run::OnDisconnect> {
    word("wish for a disconnect", text, outlast_core::run::OnDisconnect::parse)
}
