//! Instances and their users.

use outlast_core::decide::Fenced;
use outlast_core::run::{ClaimToken, Phase};
use outlast_core::{InstanceId, RunId};
use outlast_store::{Instance, InstanceError, InstanceState};
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
            "INSERT INTO instances (instance_id, sandbox_key, provider, machine, state, created_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute((
            wanted.instance_id.as_str(),
            &wanted.sandbox_key,
            &wanted.provider,
            &wanted.machine,
            wanted.state.as_str(),
            int(wanted.created_at),
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
    tx.touch(&token.run_id);
    Ok(())
}

/// See [`outlast_store::Instances::set_instance_state`].
pub(crate) fn set_instance_state(
    tx: &Tx<'_>,
    id: &InstanceId,
    state: InstanceState,
) -> Tried<Result<(), InstanceError>> {
    let Some(found) = instance(tx, id)? else {
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
        && let Some(run) = user(tx, id)?
    {
        return Ok(Err(InstanceError::InUse { instance: id.clone(), run }));
    }
    tx.db
        .prepare_cached("UPDATE instances SET state = ?2 WHERE instance_id = ?1")?
        .execute((id.as_str(), state.as_str()))?;
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
fn user(view: &View<'_>, id: &InstanceId) -> Tried<Option<RunId>> {
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
            "SELECT instance_id, sandbox_key, provider, machine, state, created_at FROM instances ",
            $tail
        )
    };
}

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

fn read(row: &Row<'_>) -> Tried<Instance> {
    let state: String = row.get(4)?;
    Ok(Instance {
        instance_id: parsed("instance id", InstanceId::new(row.get::<_, String>(0)?))?,
        sandbox_key: row.get(1)?,
        provider: row.get(2)?,
        machine: row.get(3)?,
        state: InstanceState::parse(&state)
            .ok_or_else(|| Failure::Damaged(format!("{state:?} is no state of an instance")))?,
        created_at: uint(row.get(5)?),
    })
}
