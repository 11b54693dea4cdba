//! From rows to run records.

use outlast_core::decide;
use outlast_core::run::{Cancel, Driver, RunRecord};
use outlast_core::{ExitSecret, InstanceId, OwnerId, RunId, Tenant, ThreadId};
use rusqlite::{OptionalExtension, Row};

use super::context::{View, parsed, uint};
use super::head::{cancel_of, end_of, on_disconnect_of, phase_of, status_of};
use crate::failure::Tried;

/// A query for whole records; what follows is its condition.
macro_rules! select_records {
    ($tail:literal) => {
        concat!(
            "SELECT r.run_id, r.tenant, r.thread_id, r.status, r.phase, r.started_at, r.finished_at, r.error, ",
            "r.end_reason, r.usage, r.exit_code, r.sandbox_key, r.instance_id, r.machine, r.detached_ttl, ",
            "r.on_disconnect, r.cancel_reason, r.cancel_at, r.epoch, r.lease_owner, r.lease_boot, r.lease_until, ",
            "r.claimed_at, r.tail, r.sealed, r.agent_session, r.exit_secret, r.cursor, s.json, ",
            "(SELECT max(p.until) FROM presence p WHERE p.run = r.run) ",
            "FROM runs r JOIN specs s ON s.run = r.run ",
            $tail
        )
    };
}
pub(super) use select_records;

/// The run, or none.
pub(crate) fn run(view: &View<'_>, tenant: &Tenant, run_id: &RunId) -> Tried<Option<RunRecord>> {
    let mut statement = view.db.prepare_cached(select_records!("WHERE r.run_id = ?1 AND r.tenant = ?2"))?;
    let found =
        statement.query_row((run_id.as_str(), tenant.as_str()), |row| Ok(record(view, row))).optional()?;
    found.transpose()
}

/// A run that is known to exist.
pub(super) fn existing(view: &View<'_>, run: i64) -> Tried<RunRecord> {
    let mut statement = view.db.prepare_cached(select_records!("WHERE r.run = ?1"))?;
    statement.query_row([run], |row| Ok(record(view, row)))?
}

/// Reads a row of [`select_records`].
pub(super) fn record(view: &View<'_>, row: &Row<'_>) -> Tried<RunRecord> {
    let status = status_of(row.get_ref(3)?)?;
    let started_at = uint(row.get(5)?);
    let spec: outlast_core::run::LaunchSpec =
        parsed("launch spec", serde_json::from_slice(parsed("launch spec", row.get_ref(28)?.as_bytes())?))?;
    let json = |column: usize| -> rusqlite::Result<Option<String>> { row.get(column) };
    let driver = match json(19)? {
        Some(owner) if !status.is_terminal() => {
            let boot_id: String = row.get(20)?;
            let lease_remaining = view.lease_remaining(&owner, &boot_id, uint(row.get(21)?));
            let owner = parsed("owner", OwnerId::new(owner))?;
            (lease_remaining > 0).then_some(Driver { owner, since: uint(row.get(22)?), lease_remaining })
        }
        _ => None,
    };
    let cancel_requested = match json(16)? {
        Some(reason) => Some(Cancel { reason: cancel_of(&reason)?, at: uint(row.get(17)?) }),
        None => None,
    };
    let latest_presence: Option<i64> = row.get(29)?;
    Ok(RunRecord {
        run_id: parsed("run id", RunId::new(row.get::<_, String>(0)?))?,
        thread_id: parsed("thread id", ThreadId::new(row.get::<_, String>(2)?))?,
        tenant: Tenant(row.get(1)?),
        agent: spec.agent.clone(),
        model: spec.model.clone(),
        status,
        phase: phase_of(row.get_ref(4)?)?,
        started_at,
        finished_at: row.get::<_, Option<i64>>(6)?.map(uint),
        error: json(7)?.map(|text| parsed("error", serde_json::from_str(&text))).transpose()?,
        end_reason: json(8)?.map(|text| end_of(&text)).transpose()?,
        usage: json(9)?
            .map(|text| parsed("usage", serde_json::from_str(&text)))
            .transpose()?
            .unwrap_or_default(),
        exit_code: row.get(10)?,
        sandbox_key: row.get(11)?,
        instance_id: json(12)?.map(|text| parsed("instance id", InstanceId::new(text))).transpose()?,
        machine: row.get(13)?,
        detached_since: decide::detached_since(
            started_at,
            latest_presence.map(uint),
            view.wall,
            status.is_terminal(),
        ),
        detached_ttl: row.get::<_, Option<i64>>(14)?.map(uint),
        on_disconnect: on_disconnect_of(&row.get::<_, String>(15)?)?,
        cancel_requested,
        driver_epoch: uint(row.get(18)?),
        driver,
        tail: uint(row.get(23)?),
        sealed: row.get(24)?,
        agent_session: row.get(25)?,
        exit_secret: ExitSecret::from_stored(row.get::<_, String>(26)?),
        cursor: json(27)?.map(|text| parsed("cursor", serde_json::from_str(&text))).transpose()?,
        spec,
    })
}
