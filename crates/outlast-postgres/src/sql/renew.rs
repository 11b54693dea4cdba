//! Renewing leases.

use std::collections::VecDeque;
use std::time::Duration;

use outlast_core::{OwnerId, RunId};
use outlast_store::{Clock, Renewed};
use tokio_postgres::{Client, Row};

use super::context::{Value, get, int, millis, number, parsed, uint};
use super::head::cancel;
use crate::failure::{Failure, Tried};

/// What is free is renewed in one statement. A row that somebody else has locked at this moment is left out: to wait for
/// one would keep all the others waiting, and with them those who write to their runs.
const FREE: &str = "\
UPDATE runs SET lease_until = outlast_now() + $2 WHERE run IN (\
    SELECT held.run FROM runs AS held JOIN unnest($3::text[], $4::bigint[]) AS named (run_id, epoch) \
    ON held.run_id = named.run_id AND held.epoch = named.epoch \
    WHERE held.lease_owner = $1 FOR NO KEY UPDATE OF held SKIP LOCKED\
) RETURNING run_id, epoch, cancel_reason, cancel_at";

const ONE: &str = "\
UPDATE runs SET lease_until = outlast_now() + $2 WHERE run_id = $3 AND epoch = $4 AND lease_owner = $1 \
RETURNING run_id, epoch, cancel_reason, cancel_at";

const LOOK: &str = "\
SELECT run_id, epoch, cancel_reason, cancel_at, greatest(coalesce(lease_until, 0) - outlast_now(), 0) FROM runs \
WHERE run_id = ANY ($2) AND lease_owner = $1";

/// See [`outlast_store::Runs::renew`]. The connection's `lock_timeout` bounds how long one run is waited for at a time, and a
/// quarter of the lease how long all are, in turn, so that one that stays locked costs the others nothing. What is locked
/// even then is only looked at: the answer tells how long its lease still runs.
pub(crate) async fn renew(
    client: &Client,
    owner: &OwnerId,
    claims: &[(RunId, u64)],
    lease: Duration,
    clock: &dyn Clock,
) -> Tried<Vec<Renewed>> {
    let waits_until = clock.boot_ms().saturating_add(uint(millis(lease)) / 4);
    let mut renewed = Vec::new();
    let mut left: VecDeque<(&str, i64)> =
        claims.iter().map(|(run_id, epoch)| (run_id.as_str(), int(*epoch))).collect();
    while !left.is_empty() {
        let (ids, epochs): (Vec<&str>, Vec<i64>) = left.iter().copied().unzip();
        // The end of a run takes its lease away, so whatever still has one lives.
        for row in client.query(FREE, &[&owner.as_str(), &millis(lease), &ids, &epochs]).await? {
            let one = read(&row, lease)?;
            left.retain(|(run_id, _)| *run_id != one.run_id.as_str());
            renewed.push(one);
        }
        let Some((run_id, epoch)) = left.pop_front() else {
            break;
        };
        let values: [Value<'_>; 4] = [&owner.as_str(), &millis(lease), &run_id, &epoch];
        match client.query_opt(ONE, &values).await.map_err(Failure::from) {
            Ok(row) => renewed.extend(row.map(|row| read(&row, lease)).transpose()?),
            Err(failure) if failure.found_it_locked() => left.push_back((run_id, epoch)),
            Err(failure) => return Err(failure),
        }
        if clock.boot_ms() >= waits_until {
            renewed.extend(look(client, owner, &left).await?);
            break;
        }
    }
    Ok(renewed)
}

/// How long the leases of these claims still run, where the owner holds them.
async fn look(client: &Client, owner: &OwnerId, left: &VecDeque<(&str, i64)>) -> Tried<Vec<Renewed>> {
    let ids: Vec<&str> = left.iter().map(|(run_id, _)| *run_id).collect();
    let rows = client.query(LOOK, &[&owner.as_str(), &ids]).await?;
    let held = rows.iter().map(|row| read(row, Duration::from_millis(number(row, 4)?)));
    let mut held = held.collect::<Tried<Vec<_>>>()?;
    held.retain(|one| left.contains(&(one.run_id.as_str(), int(one.epoch))));
    Ok(held)
}

fn read(row: &Row, lease: Duration) -> Tried<Renewed> {
    Ok(Renewed {
        run_id: parsed("run id", RunId::new(get::<&str>(row, 0)?))?,
        epoch: number(row, 1)?,
        lease,
        cancel: cancel(get(row, 2)?, get(row, 3)?)?,
    })
}
