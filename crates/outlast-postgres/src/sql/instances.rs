//! Instances and their users.

use deadpool_postgres::Client;
use outlast_core::decide::Fenced;
use outlast_core::run::{ClaimToken, Phase};
use outlast_core::{InstanceId, RunId};
use outlast_store::{Instance, InstanceError, InstanceState};
use tokio_postgres::Row;

use super::context::{Tx, get, int, number, parsed, word};
use super::head::Head;
use crate::failure::{Failure, Tried, defect};

macro_rules! select_instances {
    ($tail:literal) => {
        concat!(
            "SELECT instance_id, sandbox_key, provider, machine, state, created_at FROM instances ",
            $tail
        )
    };
}

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
        "INSERT INTO instances (instance_id, sandbox_key, provider, machine, state, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6)",
        &[
            &wanted.instance_id.as_str(),
            &wanted.sandbox_key,
            &wanted.provider,
            &wanted.machine,
            &wanted.state.as_str(),
            &int(wanted.created_at),
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
    tx.touch(&token.run_id);
    Ok(())
}

/// See [`outlast_store::Instances::set_instance_state`].
pub(crate) async fn set_instance_state(
    tx: &Tx<'_>,
    id: &InstanceId,
    state: InstanceState,
) -> Tried<Result<(), InstanceError>> {
    let Some(found) = locked(tx, id).await? else {
        return Ok(Err(InstanceError::NotFound(id.clone())));
    };
    if found.state == state {
        return Ok(Ok(()));
    }
    if rank(state) < rank(found.state) {
        return Ok(Err(match found.state {
            InstanceState::Destroying | InstanceState::Gone => InstanceError::Destroying(id.clone()),
            _ => defect(format!("instance {id:?} is {} already", found.state.as_str())).into(),
        }));
    }
    if state == InstanceState::Destroying
        && let Some(run) = user(tx, id).await?
    {
        return Ok(Err(InstanceError::InUse { instance: id.clone(), run }));
    }
    tx.write("UPDATE instances SET state = $2 WHERE instance_id = $1", &[&id.as_str(), &state.as_str()])
        .await?;
    Ok(Ok(()))
}

/// The order in which an instance passes through its states.
fn rank(state: InstanceState) -> u8 {
    match state {
        InstanceState::Creating => 0,
        InstanceState::Live => 1,
        InstanceState::Destroying => 2,
        InstanceState::Gone => 3,
    }
}

/// A live run that is bound to the instance.
async fn user(tx: &Tx<'_>, id: &InstanceId) -> Tried<Option<RunId>> {
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
    let row = tx.maybe(select_instances!("WHERE instance_id = $1 FOR UPDATE"), &[&id.as_str()]).await?;
    row.as_ref().map(read).transpose()
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

fn read(row: &Row) -> Tried<Instance> {
    Ok(Instance {
        instance_id: parsed("instance id", InstanceId::new(get::<&str>(row, 0)?))?,
        sandbox_key: get(row, 1)?,
        provider: get(row, 2)?,
        machine: get(row, 3)?,
        state: word("state of an instance", get(row, 4)?, InstanceState::parse)?,
        created_at: number(row, 5)?,
    })
}
