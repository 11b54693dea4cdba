//! The transcript.

use deadpool_postgres::Client;
use outlast_core::transcript::Message;
use outlast_core::{RunId, Tenant, ThreadId};
use outlast_store::MessageRow;
use tokio_postgres::Row;

use super::context::{Tx, get, parsed, to_json};
use crate::failure::Tried;

/// Messages by columns.
pub(super) struct Columns {
    pub(super) ordinals: Vec<i64>,
    pub(super) json: Vec<String>,
}

impl Columns {
    /// Of several for one place the last counts: a statement cannot touch a row twice.
    pub(super) fn of<'m>(messages: impl Iterator<Item = (i64, &'m Message)>) -> Tried<Columns> {
        let last: std::collections::BTreeMap<i64, &Message> = messages.collect();
        let mut columns = Columns { ordinals: Vec::new(), json: Vec::new() };
        for (ordinal, message) in last {
            columns.ordinals.push(ordinal);
            columns.json.push(to_json(message)?);
        }
        Ok(columns)
    }
}

/// Adds the messages, or replaces those in their places.
pub(super) async fn write_messages<'m>(
    tx: &Tx<'_>,
    run: i64,
    messages: impl Iterator<Item = (i64, &'m Message)>,
) -> Tried<()> {
    let Columns { ordinals, json } = Columns::of(messages)?;
    if !ordinals.is_empty() {
        tx.write(
            "INSERT INTO messages (run, ordinal, json) \
             SELECT $1, message.ordinal, message.json FROM unnest($2::bigint[], $3::text[]) AS message (ordinal, json) \
             ON CONFLICT (run, ordinal) DO UPDATE SET json = excluded.json",
            &[&run, &ordinals, &json],
        )
        .await?;
    }
    Ok(())
}

/// See [`outlast_store::Ledger::thread_messages`]. Ordered by the key of the run, which counts acceptances; the clock may
/// have jumped back between two of them. A thread has one live run at a time, so its keys are in that order.
pub(crate) async fn thread_messages(
    client: &Client,
    tenant: &Tenant,
    thread: &ThreadId,
) -> Tried<Vec<MessageRow>> {
    let statement = client
        .prepare_cached(
            "SELECT r.run_id, m.ordinal, m.json FROM runs r JOIN messages m ON m.run = r.run \
             WHERE r.tenant = $1 AND r.thread_id = $2 ORDER BY r.run, m.ordinal",
        )
        .await?;
    collect(&client.query(&statement, &[&tenant.as_str(), &thread.as_str()]).await?)
}

/// See [`outlast_store::Ledger::run_messages`].
pub(crate) async fn run_messages(client: &Client, tenant: &Tenant, run_id: &RunId) -> Tried<Vec<MessageRow>> {
    let statement = client
        .prepare_cached(
            "SELECT r.run_id, m.ordinal, m.json FROM runs r JOIN messages m ON m.run = r.run \
             WHERE r.run_id = $1 AND r.tenant = $2 ORDER BY m.ordinal",
        )
        .await?;
    collect(&client.query(&statement, &[&run_id.as_str(), &tenant.as_str()]).await?)
}

fn collect(rows: &[Row]) -> Tried<Vec<MessageRow>> {
    rows.iter()
        .map(|row| {
            Ok(MessageRow {
                run_id: parsed("run id", RunId::new(get::<&str>(row, 0)?))?,
                ordinal: get(row, 1)?,
                message: parsed("message", serde_json::from_str(get(row, 2)?))?,
            })
        })
        .collect()
}

/// See [`outlast_store::Ledger::last_agent_session`].
pub(crate) async fn last_agent_session(
    client: &Client,
    tenant: &Tenant,
    thread: &ThreadId,
    kind: &str,
    before: &RunId,
) -> Tried<Option<String>> {
    let statement = client
        .prepare_cached(
            "SELECT agent_session FROM runs WHERE tenant = $1 AND thread_id = $2 AND kind = $3 \
             AND agent_session IS NOT NULL AND run < (SELECT run FROM runs WHERE run_id = $4) \
             ORDER BY run DESC LIMIT 1",
        )
        .await?;
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
        [&tenant.as_str(), &thread.as_str(), &kind, &before.as_str()];
    let row = client.query_opt(&statement, &values).await?;
    row.map(|row| get(&row, 0)).transpose()
}
