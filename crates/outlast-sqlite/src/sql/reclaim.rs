//! The end of instances.

use outlast_core::decide::{self, ReclaimFacts};
use outlast_core::run::EndReason;
use outlast_core::{InstanceId, OwnerId};
use outlast_store::{BeginReclaim, Instance, InstanceState, ListInstances, ReclaimEnd, ReclaimError};
use rusqlite::{OptionalExtension, named_params};

use super::context::{Tx, View, int, millis, parsed, uint};
use super::instances::{instance, read, select_instances, user};
use crate::failure::{Failure, Tried};

/// See [`outlast_store::Instances::begin_reclaim`].
pub(crate) fn begin_reclaim(tx: &Tx<'_>, request: &BeginReclaim) -> Tried<Result<Instance, ReclaimError>> {
    let BeginReclaim { instance_id, owner, lease, forced } = request;
    let Some(found) = instance(tx, instance_id)? else {
        return Ok(Err(ReclaimError::NotFound(instance_id.clone())));
    };
    let facts = ReclaimFacts {
        gone: found.state == InstanceState::Gone,
        due_in: found.reclaim.as_ref().map(|reclaim| reclaim.at.saturating_sub(tx.wall)),
        user: user(tx, instance_id)?,
        holder: holder(tx, instance_id)?,
    };
    if let Err(refusal) = decide::reclaim(&facts, owner, *forced) {
        return Ok(Err(refusal.into()));
    }
    tx.db
        .prepare_cached(
            "UPDATE instances SET state = 'destroying', reclaim_at = min(coalesce(reclaim_at, ?2), ?2), \
             reclaim_owner = ?3, reclaim_until = ?4 WHERE instance_id = ?1",
        )?
        .execute((
            instance_id.as_str(),
            int(tx.wall),
            owner.as_str(),
            int(tx.wall.saturating_add(millis(*lease))),
        ))?;
    let begun = instance(tx, instance_id)?;
    begun.map(Ok).ok_or_else(|| Failure::Damaged(format!("instance {instance_id:?} is missing")))
}

/// Who destroys the instance, and for how many milliseconds nobody else may: not any more once its process is dead.
fn holder(view: &View<'_>, id: &InstanceId) -> Tried<Option<(OwnerId, u64)>> {
    let found: Option<(Option<String>, Option<i64>)> = view
        .db
        .prepare_cached("SELECT reclaim_owner, reclaim_until FROM instances WHERE instance_id = ?1")?
        .query_row([id.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((Some(owner), Some(until))) = found else {
        return Ok(None);
    };
    let remaining = if view.is_alive(&owner) { uint(until).saturating_sub(view.wall) } else { 0 };
    Ok(Some((parsed("owner", OwnerId::new(owner))?, remaining)))
}

/// See [`outlast_store::Instances::end_reclaim`].
pub(crate) fn end_reclaim(tx: &Tx<'_>, id: &InstanceId, owner: &OwnerId, end: &ReclaimEnd) -> Tried<()> {
    let error = match end {
        ReclaimEnd::Gone => {
            tx.db
                .prepare_cached(
                    "UPDATE instances SET state = 'gone', reclaim_at = NULL, reclaim_owner = NULL, reclaim_until = NULL \
                     WHERE instance_id = ?1 AND state = 'destroying'",
                )?
                .execute([id.as_str()])?;
            return Ok(());
        }
        ReclaimEnd::Failed { error } => error,
    };
    let failed: Option<u32> = tx
        .db
        .prepare_cached(
            "SELECT reclaim_failed FROM instances \
             WHERE instance_id = ?1 AND reclaim_owner = ?2 AND state = 'destroying'",
        )?
        .query_row((id.as_str(), owner.as_str()), |row| row.get(0))
        .optional()?;
    if let Some(failed) = failed.map(|failed| failed.saturating_add(1)) {
        let at = tx.wall.saturating_add(decide::reclaim_retry(failed));
        tx.db
            .prepare_cached(
                "UPDATE instances SET reclaim_failed = ?2, reclaim_at = ?3, reclaim_error = ?4, reclaim_owner = NULL, \
                 reclaim_until = NULL WHERE instance_id = ?1",
            )?
            .execute((id.as_str(), failed, int(at), error))?;
    }
    Ok(())
}

/// Says when the instance of a run that has just ended like this is due to be destroyed.
pub(super) fn reclaim_after_end(tx: &Tx<'_>, id: &str, reason: EndReason) -> Tried<()> {
    let found: Option<Option<i64>> = tx
        .db
        .prepare_cached(
            "SELECT keep_alive FROM instances WHERE instance_id = ?1 AND state IN ('creating', 'live')",
        )?
        .query_row([id], |row| row.get(0))
        .optional()?;
    let Some(keep_alive) = found else { return Ok(()) };
    if let Some(after) = decide::reclaim_after(reason, keep_alive.map(uint)) {
        tx.db
            .prepare_cached(
                "UPDATE instances SET reclaim_at = ?2, reclaim_failed = 0, reclaim_error = NULL WHERE instance_id = ?1",
            )?
            .execute((id, int(tx.wall.saturating_add(after))))?;
    }
    Ok(())
}

/// See [`outlast_store::Instances::list_instances`].
pub(crate) fn list_instances(view: &View<'_>, query: &ListInstances) -> Tried<Vec<Instance>> {
    // What is due is found by its time, everything else in the order of its making.
    let sql = if query.due {
        select_instances!(
            "WHERE state <> 'gone' AND reclaim_at IS NOT NULL AND reclaim_at <= :now \
             AND (:machine IS NULL OR machine IS NULL OR machine = :machine) \
             AND (created_at, instance_id) > (:at, :id) ORDER BY created_at, instance_id"
        )
    } else {
        select_instances!(
            "WHERE state <> 'gone' AND :now IS NOT NULL \
             AND (:machine IS NULL OR machine IS NULL OR machine = :machine) \
             AND (created_at, instance_id) > (:at, :id) ORDER BY created_at, instance_id"
        )
    };
    let mut statement = view.db.prepare_cached(sql)?;
    let mut rows = statement.query(named_params! {
        ":now": int(view.wall),
        ":machine": query.machine,
        ":at": query.after.as_ref().map_or(-1, |(at, _)| int(*at)),
        ":id": query.after.as_ref().map_or("", |(_, id)| id.as_str()),
    })?;
    let mut found = Vec::new();
    while found.len() < query.limit
        && let Some(row) = rows.next()?
    {
        let instance = read(row)?;
        let owner: Option<String> = row.get(13)?;
        let until: Option<i64> = row.get(14)?;
        let held =
            owner.is_some_and(|owner| view.is_alive(&owner)) && until.is_some_and(|at| uint(at) > view.wall);
        if !(query.due && held) {
            found.push(instance);
        }
    }
    Ok(found)
}
