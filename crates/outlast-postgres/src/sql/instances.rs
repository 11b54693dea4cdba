//! Instances and their users.

use deadpool_postgres::Client;
use outlast_core::decide::Fenced;
use outlast_core::run::{ClaimToken, Phase};
use outlast_core::{InstanceId, OwnerId, RunId, Tenant, ThreadId};
use outlast_store::{Instance, InstanceError, InstanceState, Reclaim};
use tokio_postgres::Row;

use super::context::{Tx, get, int, number, parsed, uint, word};
use super::head::Head;
use crate::failure::{Failure, Tried, defect};

macro_rules! select_instances {
    ($tail:literal) => {
        concat!(
            "SELECT instance_id, sandbox_key, provider, machine, state, created_at, tenant, thread_id, lent, keep_alive, ",
            "reclaim_at, reclaim_failed, reclaim_error, reclaim_owner, ",
            "greatest(coalesce(reclaim_until, 0) - outlast_now(), 0), outlast_now() FROM instances ",
            $tail
        )
    };
}
pub(super) use select_instances;

/// See [`outlast_store::Instances::create_instance`].
pub(crate) async fn create_instance(
    tx: &Tx<'_>,
    token: &ClaimToken,
    wanted: &Instance,
) -> Tried<Result<(), InstanceError>> {
    let head = match bindable(tx, token, &wanted.instance_id).await? {
        Ok(Some(head)) => head,
        // The same request again, whose first answer was lost.
        Ok(None) if locked(tx, &wanted.instance_id).await?.is_some() => return Ok(Ok(())),
        Ok(None) => return Err(Failure::Damaged(format!("instance {:?} is missing", wanted.instance_id))),
        Err(error) => return Ok(Err(error)),
    };
    if locked(tx, &wanted.instance_id).await?.is_some() {
        let message = format!("instance {:?} was made before; no id is used twice", wanted.instance_id);
        return Ok(Err(defect(message).into()));
    }
    tx.write(
        "INSERT INTO instances (instance_id, sandbox_key, provider, machine, state, created_at, tenant, thread_id, lent, \
         keep_alive) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        &[
            &wanted.instance_id.as_str(),
            &wanted.sandbox_key,
            &wanted.provider,
            &wanted.machine,
            &wanted.state.as_str(),
            &int(wanted.created_at),
            &wanted.tenant.as_str(),
            &wanted.thread_id.as_ref().map(ThreadId::as_str),
            &wanted.lent,
            &wanted.keep_alive.map(int),
        ],
    )
    .await?;
    bind(tx, token, &head, wanted).await?;
    Ok(Ok(()))
}

/// See [`outlast_store::Instances::use_instance`].
pub(crate) async fn use_instance(
    tx: &Tx<'_>,
    token: &ClaimToken,
    wanted: &InstanceId,
) -> Tried<Result<(), InstanceError>> {
    let head = match bindable(tx, token, wanted).await? {
        Ok(head) => head,
        Err(error) => return Ok(Err(error)),
    };
    let Some(found) = locked(tx, wanted).await? else {
        return Ok(Err(InstanceError::NotFound(wanted.clone())));
    };
    if matches!(found.state, InstanceState::Destroying | InstanceState::Gone) {
        return Ok(Err(InstanceError::Destroying(wanted.clone())));
    }
    if let Some(head) = head {
        bind(tx, token, &head, &found).await?;
    }
    Ok(Ok(()))
}

/// The claimed run, where it may be bound to the instance; none where it is already.
async fn bindable(
    tx: &Tx<'_>,
    token: &ClaimToken,
    wanted: &InstanceId,
) -> Tried<Result<Option<Head>, InstanceError>> {
    let Some(head) = Head::lock(tx, &token.run_id).await? else {
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

async fn bind(tx: &Tx<'_>, token: &ClaimToken, head: &Head, to: &Instance) -> Tried<()> {
    tx.write(
        "UPDATE runs SET phase = 'launching', instance_id = $2, sandbox_key = $3, machine = $4 WHERE run = $1",
        &[&head.run, &to.instance_id.as_str(), &to.sandbox_key, &to.machine],
    )
    .await?;
    // It is in use, so its end is not in sight any more.
    tx.write(
        "UPDATE instances SET reclaim_at = NULL, reclaim_failed = 0, reclaim_error = NULL \
         WHERE instance_id = $1 AND reclaim_at IS NOT NULL",
        &[&to.instance_id.as_str()],
    )
    .await?;
    tx.touch(&token.run_id);
    Ok(())
}

/// See [`outlast_store::Instances::instance_created`].
pub(crate) async fn instance_created(tx: &Tx<'_>, id: &InstanceId) -> Tried<Result<(), InstanceError>> {
    let Some(found) = locked(tx, id).await? else {
        return Ok(Err(InstanceError::NotFound(id.clone())));
    };
    match found.state {
        InstanceState::Live => {}
        InstanceState::Destroying | InstanceState::Gone => {
            return Ok(Err(InstanceError::Destroying(id.clone())));
        }
        InstanceState::Creating => {
            tx.write("UPDATE instances SET state = 'live' WHERE instance_id = $1", &[&id.as_str()]).await?;
        }
    }
    Ok(Ok(()))
}

/// A live run that is bound to the instance.
pub(super) async fn user(tx: &Tx<'_>, id: &InstanceId) -> Tried<Option<RunId>> {
    let row = tx
        .maybe(
            "SELECT run_id FROM runs WHERE instance_id = $1 AND instance_id IS NOT NULL \
             AND status IN ('running', 'interrupted') LIMIT 1",
            &[&id.as_str()],
        )
        .await?;
    row.map(|row| parsed("run id", RunId::new(get::<&str>(&row, 0)?))).transpose()
}

/// The instance, locked: who binds a run to it and who destroys it wait for each other.
async fn locked(tx: &Tx<'_>, id: &InstanceId) -> Tried<Option<Instance>> {
    Ok(locked_with(tx, id).await?.map(|(instance, _)| instance))
}

/// The same, with how much longer nobody else may destroy it and what time it is, in milliseconds.
pub(super) async fn locked_with(tx: &Tx<'_>, id: &InstanceId) -> Tried<Option<(Instance, [u64; 2])>> {
    // The clock is read once the lock is held.
    tx.maybe("SELECT 1 FROM instances WHERE instance_id = $1 FOR UPDATE", &[&id.as_str()]).await?;
    let row = tx.maybe(select_instances!("WHERE instance_id = $1"), &[&id.as_str()]).await?;
    row.map(|row| Ok((read(&row)?, [number(&row, 14)?, number(&row, 15)?]))).transpose()
}

/// See [`outlast_store::Instances::instance`].
pub(crate) async fn instance(client: &Client, id: &InstanceId) -> Tried<Option<Instance>> {
    let statement = client.prepare_cached(select_instances!("WHERE instance_id = $1")).await?;
    let row = client.query_opt(&statement, &[&id.as_str()]).await?;
    row.as_ref().map(read).transpose()
}

/// See [`outlast_store::Instances::find_instance`].
pub(crate) async fn find_instance(
    client: &Client,
    sandbox_key: &str,
    machine: Option<&str>,
) -> Tried<Option<Instance>> {
    let statement = client
        .prepare_cached(select_instances!(
            "WHERE sandbox_key = $1 AND state IN ('creating', 'live') AND (machine IS NULL OR machine = $2) \
             ORDER BY created_at DESC, instance DESC LIMIT 1"
        ))
        .await?;
    let row = client.query_opt(&statement, &[&sandbox_key, &machine]).await?;
    row.as_ref().map(read).transpose()
}

pub(super) fn read(row: &Row) -> Tried<Instance> {
    let owner = get::<Option<&str>>(row, 13)?;
    let owner = owner.map(|owner| parsed("owner", OwnerId::new(owner))).transpose()?;
    let thread_id = get::<Option<&str>>(row, 7)?;
    let reclaim = match get::<Option<i64>>(row, 10)? {
        None => None,
        Some(at) => Some(Reclaim {
            at: uint(at),
            failed: u32::try_from(get::<i32>(row, 11)?).unwrap_or(0),
            error: get(row, 12)?,
            owner,
        }),
    };
    Ok(Instance {
        instance_id: parsed("instance id", InstanceId::new(get::<&str>(row, 0)?))?,
        sandbox_key: get(row, 1)?,
        provider: get(row, 2)?,
        machine: get(row, 3)?,
        state: word("state of an instance", get(row, 4)?, InstanceState::parse)?,
        created_at: number(row, 5)?,
        tenant: Tenant(get(row, 6)?),
        thread_id: thread_id.map(|id| parsed("thread id", ThreadId::new(id))).transpose()?,
        lent: get(row, 8)?,
        keep_alive: get::<Option<i64>>(row, 9)?.map(uint),
        reclaim,
    })
}
