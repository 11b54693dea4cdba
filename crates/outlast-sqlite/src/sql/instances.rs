//! Instances and their users.

use outlast_core::decide::Fenced;
use outlast_core::run::{ClaimToken, Phase};
use outlast_core::{InstanceId, OwnerId, RunId, Tenant, ThreadId};
use outlast_store::{Instance, InstanceError, InstanceState, Reclaim};
use rusqlite::{OptionalExtension, Row};

use super::context::{Tx, View, int, parsed, uint};
use super::head::Head;
use crate::failure::{Failure, Tried, defect};

/// See [`outlast_store::Instances::create_instance`].
pub(crate) fn create_instance(
    tx: &Tx<'_>,
    token: &ClaimToken,
    wanted: &Instance,
) -> Tried<Result<(), InstanceError>> {
    let head = match bindable(tx, token, &wanted.instance_id)? {
        Ok(Some(head)) => head,
        // The same request again, whose first answer was lost.
        Ok(None) if instance(tx, &wanted.instance_id)?.is_some() => return Ok(Ok(())),
        Ok(None) => return Err(Failure::Damaged(format!("instance {:?} is missing", wanted.instance_id))),
        Err(error) => return Ok(Err(error)),
    };
    if instance(tx, &wanted.instance_id)?.is_some() {
        let message = format!("instance {:?} was made before; no id is used twice", wanted.instance_id);
        return Ok(Err(defect(message).into()));
    }
    tx.db
        .prepare_cached(
            "INSERT INTO instances (instance_id, sandbox_key, provider, machine, state, created_at, tenant, thread_id, \
             lent, keep_alive) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute((
            wanted.instance_id.as_str(),
            &wanted.sandbox_key,
            &wanted.provider,
            &wanted.machine,
            wanted.state.as_str(),
            int(wanted.created_at),
            wanted.tenant.as_str(),
            wanted.thread_id.as_ref().map(ThreadId::as_str),
            wanted.lent,
            wanted.keep_alive.map(int),
        ))?;
    bind(tx, token, &head, wanted)?;
    Ok(Ok(()))
}

/// See [`outlast_store::Instances::use_instance`].
pub(crate) fn use_instance(
    tx: &Tx<'_>,
    token: &ClaimToken,
    wanted: &InstanceId,
) -> Tried<Result<(), InstanceError>> {
    let head = match bindable(tx, token, wanted)? {
        Ok(head) => head,
        Err(error) => return Ok(Err(error)),
    };
    let Some(found) = instance(tx, wanted)? else {
        return Ok(Err(InstanceError::NotFound(wanted.clone())));
    };
    if matches!(found.state, InstanceState::Destroying | InstanceState::Gone) {
        return Ok(Err(InstanceError::Destroying(wanted.clone())));
    }
    if let Some(head) = head {
        bind(tx, token, &head, &found)?;
    }
    Ok(Ok(()))
}

/// The claimed run, where it may be bound to the instance; none where it is already.
fn bindable(
    tx: &Tx<'_>,
    token: &ClaimToken,
    wanted: &InstanceId,
) -> Tried<Result<Option<Head>, InstanceError>> {
    let Some(head) = Head::find(tx, &token.run_id)? else {
        return Ok(Err(Fenced::RunNotFound(token.run_id.clone()).into()));
    };
    if let Err(fenced) = head.facts.fence(token) {
        return Ok(Err(fenced.into()));
    }
    if head.instance_id.as_deref() == Some(wanted.as_str()) {
        return Ok(Ok(None));
    }
    if head.phase == Phase::Launched {
        // Its agent is in the other instance: bound here it could never be reached again.
        let message = format!("run {:?} is launched in another instance than {wanted:?}", token.run_id);
        return Ok(Err(defect(message).into()));
    }
    Ok(Ok(Some(head)))
}

fn bind(tx: &Tx<'_>, token: &ClaimToken, head: &Head, to: &Instance) -> Tried<()> {
    tx.db
        .prepare_cached(
            "UPDATE runs SET phase = 'launching', instance_id = ?2, sandbox_key = ?3, machine = ?4 WHERE run = ?1",
        )?
        .execute((head.run, to.instance_id.as_str(), &to.sandbox_key, &to.machine))?;
    // It is in use, so its end is not in sight any more.
    tx.db
        .prepare_cached(
            "UPDATE instances SET reclaim_at = NULL, reclaim_failed = 0, reclaim_error = NULL WHERE instance_id = ?1",
        )?
        .execute([to.instance_id.as_str()])?;
    tx.touch(&token.run_id);
    Ok(())
}

/// See [`outlast_store::Instances::instance_created`].
pub(crate) fn instance_created(tx: &Tx<'_>, id: &InstanceId) -> Tried<Result<(), InstanceError>> {
    let Some(found) = instance(tx, id)? else {
        return Ok(Err(InstanceError::NotFound(id.clone())));
    };
    match found.state {
        InstanceState::Live => Ok(Ok(())),
        InstanceState::Destroying | InstanceState::Gone => Ok(Err(InstanceError::Destroying(id.clone()))),
        InstanceState::Creating => {
            tx.db
                .prepare_cached("UPDATE instances SET state = 'live' WHERE instance_id = ?1")?
                .execute([id.as_str()])?;
            Ok(Ok(()))
        }
    }
}

/// A live run that is bound to the instance.
pub(super) fn user(view: &View<'_>, id: &InstanceId) -> Tried<Option<RunId>> {
    let mut statement = view.db.prepare_cached(
        "SELECT run_id FROM runs WHERE instance_id = ?1 AND instance_id IS NOT NULL \
         AND status IN ('running', 'interrupted') LIMIT 1",
    )?;
    let found: Option<String> = statement.query_row([id.as_str()], |row| row.get(0)).optional()?;
    found.map(|text| parsed("run id", RunId::new(text))).transpose()
}

macro_rules! select_instances {
    ($tail:literal) => {
        concat!(
            "SELECT instance_id, sandbox_key, provider, machine, state, created_at, tenant, thread_id, lent, keep_alive, ",
            "reclaim_at, reclaim_failed, reclaim_error, reclaim_owner, reclaim_until FROM instances ",
            $tail
        )
    };
}
pub(super) use select_instances;

/// See [`outlast_store::Instances::instance`].
pub(crate) fn instance(view: &View<'_>, id: &InstanceId) -> Tried<Option<Instance>> {
    let mut statement = view.db.prepare_cached(select_instances!("WHERE instance_id = ?1"))?;
    statement.query_row([id.as_str()], |row| Ok(read(row))).optional()?.transpose()
}

/// See [`outlast_store::Instances::find_instance`].
pub(crate) fn find_instance(
    view: &View<'_>,
    sandbox_key: &str,
    machine: Option<&str>,
) -> Tried<Option<Instance>> {
    let mut statement = view.db.prepare_cached(select_instances!(
        "WHERE sandbox_key = ?1 AND state IN ('creating', 'live') AND (machine IS NULL OR machine = ?2) \
         ORDER BY created_at DESC, instance DESC LIMIT 1"
    ))?;
    statement.query_row((sandbox_key, machine), |row| Ok(read(row))).optional()?.transpose()
}

pub(super) fn read(row: &Row<'_>) -> Tried<Instance> {
    let state: String = row.get(4)?;
    let thread_id: Option<String> = row.get(7)?;
    let owner: Option<String> = row.get(13)?;
    let owner = owner.map(|owner| parsed("owner", OwnerId::new(owner))).transpose()?;
    let at: Option<i64> = row.get(10)?;
    let reclaim = match at {
        None => None,
        Some(at) => Some(Reclaim { at: uint(at), failed: row.get(11)?, error: row.get(12)?, owner }),
    };
    Ok(Instance {
        instance_id: parsed("instance id", InstanceId::new(row.get::<_, String>(0)?))?,
        sandbox_key: row.get(1)?,
        provider: row.get(2)?,
        machine: row.get(3)?,
        state: InstanceState::parse(&state)
            .ok_or_else(|| Failure::Damaged(format!("{state:?} is no state of an instance")))?,
        created_at: uint(row.get(5)?),
        tenant: Tenant(row.get(6)?),
        thread_id: thread_id.map(|id| parsed("thread id", ThreadId::new(id))).transpose()?,
        lent: row.get(8)?,
        keep_alive: row.get::<_, Option<i64>>(9)?.map(uint),
        reclaim,
    })
}
