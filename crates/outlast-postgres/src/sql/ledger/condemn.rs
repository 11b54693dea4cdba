//! What points to bodies, and bodies to which nothing ever will.

use deadpool_postgres::Client;
use outlast_core::decide::RecordsRefusal;
use outlast_core::ledger::{Pointer, SessionId};
use outlast_store::{LeaseOn, LeaseToken, RecordsError};

use super::bodies::key_range;
use super::leases::lease_held;
use super::session::Session;
use crate::failure::Tried;
use crate::sql::context::{Tx, get, uint};

/// See [`outlast_store::Ledger::pointers`]. One statement, and so one snapshot: the end of a run moves its messages.
pub(crate) async fn pointers(client: &Client, session: &SessionId) -> Tried<Vec<Pointer>> {
    let statement = client
        .prepare_cached(
            "SELECT blob_key, blob_size FROM records WHERE blob_key >= $1 AND blob_key < $2 \
             UNION SELECT blob_key, blob_size FROM events WHERE blob_key >= $1 AND blob_key < $2 \
             UNION SELECT blob_key, blob_size FROM messages WHERE blob_key >= $1 AND blob_key < $2 ORDER BY 1, 2",
        )
        .await?;
    let (from, to) = key_range(session);
    let rows = client.query(&statement, &[&from, &to]).await?;
    rows.iter()
        .map(|row| Ok(Pointer { key: get(row, 0)?, size: get::<Option<i64>>(row, 1)?.map_or(0, uint) }))
        .collect()
}

/// See [`outlast_store::Ledger::condemn`]. What points to a body is looked for with the session's row locked, in a statement
/// that begins after that, so whoever points to one under the same lock was either committed before, and is seen, or sees
/// the mark.
pub(crate) async fn condemn(
    tx: &Tx<'_>,
    lease: &LeaseToken,
    keys: &[String],
) -> Tried<Result<Vec<String>, RecordsError>> {
    let LeaseOn::Session(id) = &lease.on else { return Ok(Ok(Vec::new())) };
    let Some(session) = Session::lock_by_id(tx, id).await? else {
        return Ok(Err(RecordsRefusal::SessionNotFound(id.to_string()).into()));
    };
    if !lease_held(tx, lease).await? {
        let (session_id, epoch) = (id.clone(), lease.epoch);
        return Ok(Err(RecordsRefusal::LeaseLost { session_id, epoch }.into()));
    }
    let (from, to) = key_range(id);
    // What is no body of the session is nobody's to condemn under this lease.
    let keys: Vec<&str> =
        keys.iter().map(String::as_str).filter(|key| (from.as_str()..to.as_str()).contains(key)).collect();
    if !keys.is_empty() {
        tx.write(
            "INSERT INTO condemned (blob_key, session) SELECT DISTINCT key, $1::bigint FROM unnest($2::text[]) AS key \
             WHERE NOT EXISTS (SELECT 1 FROM records r WHERE r.blob_key = key) \
             AND NOT EXISTS (SELECT 1 FROM events e WHERE e.blob_key = key) \
             AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.blob_key = key) ON CONFLICT DO NOTHING",
            &[&session.key, &keys],
        )
        .await?;
    }
    let sql = "SELECT blob_key FROM condemned WHERE blob_key >= $1 AND blob_key < $2 ORDER BY blob_key";
    let all = tx.all(sql, &[&from, &to]).await?;
    Ok(Ok(all.iter().map(|row| get(row, 0)).collect::<Tried<_>>()?))
}
