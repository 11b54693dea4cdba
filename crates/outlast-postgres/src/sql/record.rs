//! From rows to run records.

use deadpool_postgres::Client;
use outlast_core::decide;
use outlast_core::run::{Driver, EndReason, OnDisconnect, Phase, RunRecord, Status};
use outlast_core::{ExitSecret, InstanceId, OwnerId, RunId, Tenant, ThreadId};
use tokio_postgres::Row;

use super::context::{Tx, get, number, parsed, uint, word};
use super::head::cancel;
use crate::failure::Tried;

/// A query for whole records; what follows is its condition.
macro_rules! select_records {
    ($tail:literal) => {
        concat!(
            "SELECT r.run_id, r.tenant, r.thread_id, r.status, r.phase, r.started_at, r.finished_at, r.error, ",
            "r.end_reason, r.usage, r.exit_code, r.sandbox_key, r.instance_id, r.machine, r.detached_ttl, ",
            "r.on_disconnect, r.cancel_reason, r.cancel_at, r.epoch, r.lease_owner, ",
            "greatest(coalesce(r.lease_until, 0) - outlast_now(), 0), r.claimed_at, r.tail, r.sealed, ",
            "r.agent_session, r.exit_secret, r.cursor, s.json, ",
            "(SELECT max(p.until_time) FROM presence p WHERE p.run = r.run), outlast_now(), r.run, r.ledgered ",
            "FROM runs r JOIN specs s ON s.run = r.run ",
            $tail
        )
    };
}
pub(super) use select_records;

const BY_ID: &str = select_records!("WHERE r.run_id = $1 AND r.tenant = $2");

/// The run, or none.
pub(crate) async fn run(client: &Client, tenant: &Tenant, run_id: &RunId) -> Tried<Option<RunRecord>> {
    let statement = client.prepare_cached(BY_ID).await?;
    let row = client.query_opt(&statement, &[&run_id.as_str(), &tenant.as_str()]).await?;
    row.as_ref().map(record).transpose()
}

/// The run, or none, as the transaction sees it.
pub(super) async fn run_in(tx: &Tx<'_>, tenant: &Tenant, run_id: &RunId) -> Tried<Option<RunRecord>> {
    let row = tx.maybe(BY_ID, &[&run_id.as_str(), &tenant.as_str()]).await?;
    row.as_ref().map(record).transpose()
}

/// A run that is known to exist.
pub(super) async fn existing(tx: &Tx<'_>, run: i64) -> Tried<RunRecord> {
    record(&tx.one(select_records!("WHERE r.run = $1"), &[&run]).await?)
}

/// Reads a row of [`select_records`].
pub(super) fn record(row: &Row) -> Tried<RunRecord> {
    let status = word("status", get(row, 3)?, Status::parse)?;
    let started_at = number(row, 5)?;
    let spec: outlast_core::run::LaunchSpec = parsed("launch spec", serde_json::from_str(get(row, 27)?))?;
    let lease_remaining = number(row, 20)?;
    let driver = match get::<Option<&str>>(row, 19)? {
        Some(owner) if !status.is_terminal() && lease_remaining > 0 => Some(Driver {
            owner: parsed("owner", OwnerId::new(owner))?,
            since: get::<Option<i64>>(row, 21)?.map_or(0, uint),
            lease_remaining,
        }),
        _ => None,
    };
    let text = |column: usize| get::<Option<&str>>(row, column);
    Ok(RunRecord {
        run_id: parsed("run id", RunId::new(get::<&str>(row, 0)?))?,
        thread_id: parsed("thread id", ThreadId::new(get::<&str>(row, 2)?))?,
        tenant: Tenant(get(row, 1)?),
        agent: spec.agent.clone(),
        model: spec.model.clone(),
        status,
        phase: word("phase", get(row, 4)?, Phase::parse)?,
        started_at,
        finished_at: get::<Option<i64>>(row, 6)?.map(uint),
        error: text(7)?.map(|text| parsed("error", serde_json::from_str(text))).transpose()?,
        end_reason: text(8)?.map(|text| word("reason to end", text, EndReason::parse)).transpose()?,
        usage: text(9)?
            .map(|text| parsed("usage", serde_json::from_str(text)))
            .transpose()?
            .unwrap_or_default(),
        exit_code: get(row, 10)?,
        sandbox_key: get(row, 11)?,
        instance_id: text(12)?.map(|text| parsed("instance id", InstanceId::new(text))).transpose()?,
        machine: get(row, 13)?,
        detached_since: decide::detached_since(
            started_at,
            get::<Option<i64>>(row, 28)?.map(uint),
            number(row, 29)?,
            status.is_terminal(),
        ),
        detached_ttl: get::<Option<i64>>(row, 14)?.map(uint),
        on_disconnect: word("wish for a disconnect", get(row, 15)?, OnDisconnect::parse)?,
        cancel_requested: cancel(text(16)?, get(row, 17)?)?,
        driver_epoch: number(row, 18)?,
        driver,
        tail: number(row, 22)?,
        sealed: get(row, 23)?,
        agent_session: get(row, 24)?,
        exit_secret: ExitSecret::from_stored(get::<String>(row, 25)?),
        cursor: text(26)?.map(|text| parsed("cursor", serde_json::from_str(text))).transpose()?,
        spec,
    })
}
