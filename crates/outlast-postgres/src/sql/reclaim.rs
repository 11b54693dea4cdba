//! The end of instances.

use deadpool_postgres::Client;
use outlast_core::decide::{self, ReclaimFacts};
use outlast_core::run::EndReason;
use outlast_core::{InstanceId, OwnerId};
use outlast_store::{
    BeginReclaim, Instance, InstanceState, ListInstances, Reclaim, ReclaimEnd, ReclaimError,
};

use super::context::{Tx, get, int, millis, uint};
use super::instances::{locked_with, read, select_instances, user};
use crate::failure::Tried;

/// See [`outlast_store::Instances::begin_reclaim`].
pub(crate) async fn begin_reclaim(
    tx: &Tx<'_>,
    request: &BeginReclaim,
) -> Tried<Result<Instance, ReclaimError>> {
    let BeginReclaim { instance_id, owner, lease, forced } = request;
    let Some((found, [remaining, now])) = locked_with(tx, instance_id).await? else {
        return Ok(Err(ReclaimError::NotFound(instance_id.clone())));
    };
    let reclaim = found.reclaim.as_ref();
    let facts = ReclaimFacts {
        gone: found.state == InstanceState::Gone,
        due_in: reclaim.map(|reclaim| reclaim.at.saturating_sub(now)),
        user: user(tx, instance_id).await?,
        holder: reclaim.and_then(|reclaim| reclaim.owner.clone()).map(|owner| (owner, remaining)),
    };
    if let Err(refusal) = decide::reclaim(&facts, owner, *forced) {
        return Ok(Err(refusal.into()));
    }
    let at = reclaim.map_or(now, |reclaim| reclaim.at.min(now));
    tx.write(
        "UPDATE instances SET state = 'destroying', reclaim_at = $2, reclaim_owner = $3, \
         reclaim_until = outlast_now() + $4 WHERE instance_id = $1",
        &[&instance_id.as_str(), &int(at), &owner.as_str(), &millis(*lease)],
    )
    .await?;
    let reclaim = Reclaim {
        at,
        failed: reclaim.map_or(0, |reclaim| reclaim.failed),
        error: reclaim.and_then(|reclaim| reclaim.error.clone()),
        owner: Some(owner.clone()),
    };
    Ok(Ok(Instance { state: InstanceState::Destroying, reclaim: Some(reclaim), ..found }))
}

/// See [`outlast_store::Instances::end_reclaim`].
pub(crate) async fn end_reclaim(
    tx: &Tx<'_>,
    id: &InstanceId,
    owner: &OwnerId,
    end: &ReclaimEnd,
) -> Tried<()> {
    let Some((found, [_, now])) = locked_with(tx, id).await? else {
        return Ok(());
    };
    match (end, found.reclaim) {
        _ if found.state != InstanceState::Destroying => {}
        (ReclaimEnd::Gone, _) => {
            tx.write(
                "UPDATE instances SET state = 'gone', reclaim_at = NULL, reclaim_owner = NULL, reclaim_until = NULL \
                 WHERE instance_id = $1",
                &[&id.as_str()],
            )
            .await?;
        }
        (ReclaimEnd::Failed { error }, Some(reclaim)) if reclaim.owner.as_ref() == Some(owner) => {
            let failed = reclaim.failed.saturating_add(1);
            let at = now.saturating_add(decide::reclaim_retry(failed));
            // A text of PostgreSQL holds no NUL.
            let error = error.replace('\0', "\u{fffd}");
            tx.write(
                "UPDATE instances SET reclaim_failed = $2, reclaim_at = $3, reclaim_error = $4, reclaim_owner = NULL, \
                 reclaim_until = NULL WHERE instance_id = $1",
                &[&id.as_str(), &i32::try_from(failed).unwrap_or(i32::MAX), &int(at), &error],
            )
            .await?;
        }
        (ReclaimEnd::Failed { .. }, _) => {}
    }
    Ok(())
}

/// Says when the instance of a run that has just ended like this is due to be destroyed.
pub(super) async fn reclaim_after_end(tx: &Tx<'_>, id: &str, reason: EndReason) -> Tried<()> {
    let found = tx
        .maybe(
            "SELECT keep_alive FROM instances WHERE instance_id = $1 AND state IN ('creating', 'live') FOR UPDATE",
            &[&id],
        )
        .await?;
    let Some(found) = found else { return Ok(()) };
    let keep_alive = get::<Option<i64>>(&found, 0)?.map(uint);
    if let Some(after) = decide::reclaim_after(reason, keep_alive) {
        tx.write(
            "UPDATE instances SET reclaim_at = outlast_now() + $2, reclaim_failed = 0, reclaim_error = NULL \
             WHERE instance_id = $1",
            &[&id, &int(after)],
        )
        .await?;
    }
    Ok(())
}

/// See [`outlast_store::Instances::list_instances`].
pub(crate) async fn list_instances(client: &Client, query: &ListInstances) -> Tried<Vec<Instance>> {
    let sql = if query.due {
        select_instances!(
            "WHERE state <> 'gone' AND reclaim_at IS NOT NULL AND reclaim_at <= outlast_now() \
             AND (reclaim_owner IS NULL OR reclaim_until <= outlast_now()) \
             AND ($1::text IS NULL OR machine IS NULL OR machine = $1) \
             AND (created_at, instance_id COLLATE \"C\") > ($2, $3::text COLLATE \"C\") \
             ORDER BY created_at, instance_id COLLATE \"C\" LIMIT $4"
        )
    } else {
        select_instances!(
            "WHERE state <> 'gone' AND ($1::text IS NULL OR machine IS NULL OR machine = $1) \
             AND (created_at, instance_id COLLATE \"C\") > ($2, $3::text COLLATE \"C\") \
             ORDER BY created_at, instance_id COLLATE \"C\" LIMIT $4"
        )
    };
    let statement = client.prepare_cached(sql).await?;
    let after = query.after.as_ref();
    let rows = client
        .query(
            &statement,
            &[
                &query.machine,
                &after.map_or(-1, |(at, _)| int(*at)),
                &after.map_or("", |(_, id)| id.as_str()),
                &int(query.limit as u64),
            ],
        )
        .await?;
    rows.iter().map(read).collect()
}
