//! The transcript.

use std::collections::BTreeMap;

use deadpool_postgres::Client;
use outlast_core::ledger::{Decoded, Kind, Record};
use outlast_core::{RunId, Tenant, ThreadId};
use outlast_store::{MessagePage, MessageRow, NewMessage};
use tokio_postgres::Row;

use super::context::{Tx, get, int, parsed, to_json, uint};
use super::ledger::pointer;
use crate::failure::{Failure, Tried};

/// Where the body of a row of `messages` is, if it is elsewhere: not where a host of the version before has replaced the
/// message, which knows nothing of that.
macro_rules! body_elsewhere {
    ($message:literal) => {
        concat!(
            "CASE WHEN ",
            $message,
            ".blob_key IS NULL THEN NULL WHEN ",
            $message,
            ".stub = encode(sha256(convert_to(",
            $message,
            ".json, 'UTF8')), 'hex') THEN ",
            $message,
            ".blob_key END"
        )
    };
}
pub(super) use body_elsewhere;

/// Messages by columns.
pub(super) struct Columns<'m> {
    pub(super) ordinals: Vec<i64>,
    pub(super) json: Vec<String>,
    keys: Vec<Option<&'m str>>,
    sizes: Vec<Option<i64>>,
    sums: Vec<Option<&'m str>>,
}

impl<'m> Columns<'m> {
    /// Of several for one place the last counts: a statement cannot touch a row twice.
    pub(super) fn of(messages: &'m [NewMessage]) -> Tried<Columns<'m>> {
        let last: BTreeMap<i64, &NewMessage> = messages.iter().map(|new| (new.ordinal, new)).collect();
        let elsewhere = || last.values().map(|new| new.offloaded.as_ref());
        Ok(Columns {
            ordinals: last.keys().copied().collect(),
            json: last.values().map(|new| to_json(&new.message)).collect::<Tried<_>>()?,
            keys: elsewhere().map(|body| body.map(|body| body.pointer.key.as_str())).collect(),
            sizes: elsewhere().map(|body| body.map(|body| int(body.pointer.size))).collect(),
            sums: elsewhere().map(|body| body.map(|body| body.sum.as_str())).collect(),
        })
    }
}

/// Adds the messages, or replaces those in their places.
pub(super) async fn write_messages(tx: &Tx<'_>, run: i64, messages: &[NewMessage]) -> Tried<()> {
    if messages.is_empty() {
        return Ok(());
    }
    let Columns { ordinals, json, keys, sizes, sums } = Columns::of(messages)?;
    tx.write(
        "INSERT INTO messages (run, ordinal, json, blob_key, blob_size, sum, stub) \
         SELECT $1, m.ordinal, m.json, m.key, m.size, m.sum, \
            CASE WHEN m.key IS NOT NULL THEN encode(sha256(convert_to(m.json, 'UTF8')), 'hex') END \
         FROM unnest($2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::text[]) AS m (ordinal, json, key, size, sum) \
         ON CONFLICT (run, ordinal) DO UPDATE SET json = excluded.json, blob_key = excluded.blob_key, \
            blob_size = excluded.blob_size, sum = excluded.sum, stub = excluded.stub",
        &[&run, &ordinals, &json, &keys, &sizes, &sums],
    )
    .await?;
    Ok(())
}

/// In one statement, and so of one snapshot: the end of a run moves its messages to the records. One record more than is
/// asked for tells whether there is one. Runs are in the order of their keys, which count acceptances; the clock may have
/// jumped back between two of them.
///
/// `coalesce` keeps the planner from a guess at how rare messages are: where it has no statistics yet, it takes one record in
/// 200 for one, and then reads and sorts the whole ledger for its last page.
const OF_THREAD: &str = concat!(
    "WITH live AS (\
        SELECT r.run, r.run_id, m.ordinal, m.json, ",
    body_elsewhere!("m"),
    " AS blob_key, m.blob_size FROM runs r JOIN messages m ON m.run = r.run \
        WHERE $3::bigint IS NULL AND r.tenant = $1 AND r.thread_id = $2 AND r.ledgered < 2\
    ), earlier AS (\
        SELECT seq, record_id, skip, body, blob_key, blob_size FROM records \
        WHERE session = (SELECT session FROM sessions WHERE tenant = $1 AND thread_id = $2) \
            AND coalesce(kind = 'message', false) \
            AND seq < coalesce($3, 9223372036854775807) \
        ORDER BY seq DESC LIMIT 1 + greatest($4 - (SELECT count(*) FROM live), 0)\
    ) SELECT record_id, skip, body, blob_key, blob_size, NULL::bigint AS ordinal, seq, NULL::bigint AS run FROM earlier \
    UNION ALL SELECT run_id, false, json, blob_key, blob_size, ordinal, NULL, run FROM live \
    ORDER BY seq NULLS LAST, run, ordinal"
);

/// See [`outlast_store::Ledger::thread_messages`].
pub(crate) async fn thread_messages(
    client: &Client,
    tenant: &Tenant,
    thread: &ThreadId,
    before: Option<u64>,
    limit: usize,
) -> Tried<MessagePage> {
    let statement = client.prepare_cached(OF_THREAD).await?;
    // Far from what could not be added to.
    let limit = (limit as u64).min(1 << 40);
    let rows = client
        .query(&statement, &[&tenant.as_str(), &thread.as_str(), &before.map(int), &int(limit)])
        .await?;
    let mut messages = rows.iter().map(message).collect::<Tried<Vec<_>>>()?;
    let seqs = rows.iter().map(|row| get(row, 6)).collect::<Tried<Vec<Option<i64>>>>()?;
    let seqs: Vec<u64> = seqs.into_iter().flatten().map(uint).collect();
    let live = (messages.len() - seqs.len()) as u64;
    // The oldest record is there only to be known of.
    let more = seqs.len() as u64 > limit.saturating_sub(live);
    let before = more.then(|| seqs.get(1).copied().unwrap_or(seqs[0] + 1));
    if more {
        messages.remove(0);
    }
    Ok(MessagePage { messages, before })
}

/// Those of a run that has ended are records between those of its start and end, which are found by their ids: as values of
/// their own, so that they bound the range of the index and are no filter behind it.
const OF_RUN: &str = concat!(
    "WITH ended AS (\
        SELECT s.session FROM runs r JOIN sessions s ON s.tenant = r.tenant AND s.thread_id = r.thread_id \
        WHERE r.run_id = $1 AND r.tenant = $2 AND r.ledgered = 2\
    ) SELECT r.run_id, false, m.json, ",
    body_elsewhere!("m"),
    " AS blob_key, m.blob_size, m.ordinal, m.ordinal AS place \
    FROM runs r JOIN messages m ON m.run = r.run WHERE r.run_id = $1 AND r.tenant = $2 AND r.ledgered < 2 \
    UNION ALL SELECT record_id, skip, body, blob_key, blob_size, NULL, seq FROM records \
    WHERE session = (SELECT session FROM ended) AND kind = 'message' \
    AND seq > (SELECT seq FROM records WHERE session = (SELECT session FROM ended) AND record_id = 'run_started/' || $1) \
    AND seq < (SELECT seq FROM records WHERE session = (SELECT session FROM ended) AND record_id = 'run_ended/' || $1) \
    ORDER BY place"
);

/// See [`outlast_store::Ledger::run_messages`].
pub(crate) async fn run_messages(client: &Client, tenant: &Tenant, run_id: &RunId) -> Tried<Vec<MessageRow>> {
    let statement = client.prepare_cached(OF_RUN).await?;
    let rows = client.query(&statement, &[&run_id.as_str(), &tenant.as_str()]).await?;
    let mut messages = rows.iter().map(message).collect::<Tried<Vec<_>>>()?;
    messages.retain(|message| message.run_id == *run_id);
    Ok(messages)
}

/// A row of `messages`, which has an ordinal; or a record, whose id says which message it is.
fn message(row: &Row) -> Tried<MessageRow> {
    let (id, json) = (get::<&str>(row, 0)?, get::<&str>(row, 2)?);
    let pointer = pointer(row, 3)?;
    if let Some(ordinal) = get::<Option<i64>>(row, 5)? {
        let run_id = parsed("run id", RunId::new(id))?;
        let message = parsed("message", serde_json::from_str(json))?;
        return Ok(MessageRow { run_id, ordinal, message, pointer });
    }
    match parsed("record", Record::decode(Kind::Message.as_str(), get(row, 1)?, id, json))? {
        Decoded::Known(known) => match *known {
            Record::Message { run_id, ordinal, message } => {
                Ok(MessageRow { run_id, ordinal, message, pointer })
            }
            other => Err(Failure::Damaged(format!("the record {id:?} is a {}", other.kind().as_str()))),
        },
        Decoded::Skipped => Err(Failure::Damaged(format!("the record {id:?} is no message"))),
    }
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
