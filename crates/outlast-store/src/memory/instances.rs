//! Sandboxes that were created, or are to be.

use async_trait::async_trait;
use outlast_core::InstanceId;
use outlast_core::run::{ClaimToken, Phase};

use super::MemoryStore;
use super::handle::defect;
use super::state::{Run, State};
use crate::{Instance, InstanceError, InstanceState, Instances, StoreError};

#[async_trait]
impl Instances for MemoryStore {
    async fn create_instance(&self, token: &ClaimToken, instance: &Instance) -> Result<(), InstanceError> {
        let mut state = self.lock();
        let known = position(&state, &instance.instance_id).is_some();
        let run = bindable(&mut state, token, &instance.instance_id)?;
        if bound(run, &instance.instance_id) {
            return Ok(());
        }
        if known {
            let message = format!("instance {:?} was made before; no id is used twice", instance.instance_id);
            return Err(defect(message).into());
        }
        bind(run, instance);
        state.instances.push(instance.clone());
        drop(state);
        self.signals.run_changed(&token.run_id);
        Ok(())
    }

    async fn use_instance(&self, token: &ClaimToken, instance: &InstanceId) -> Result<(), InstanceError> {
        let mut state = self.lock();
        let found = position(&state, instance).map(|at| state.instances[at].clone());
        let run = bindable(&mut state, token, instance)?;
        let found = found.ok_or_else(|| InstanceError::NotFound(instance.clone()))?;
        if matches!(found.state, InstanceState::Destroying | InstanceState::Gone) {
            return Err(InstanceError::Destroying(instance.clone()));
        }
        if !bound(run, instance) {
            bind(run, &found);
            drop(state);
            self.signals.run_changed(&token.run_id);
        }
        Ok(())
    }

    async fn set_instance_state(
        &self,
        instance: &InstanceId,
        to: InstanceState,
    ) -> Result<(), InstanceError> {
        let mut state = self.lock();
        let at = position(&state, instance).ok_or_else(|| InstanceError::NotFound(instance.clone()))?;
        let from = state.instances[at].state;
        if rank(to) < rank(from) {
            return Err(match from {
                InstanceState::Destroying | InstanceState::Gone => {
                    InstanceError::Destroying(instance.clone())
                }
                _ => defect(format!("instance {instance:?} is {} already", from.as_str())).into(),
            });
        }
        let user = state.runs.iter().find(|run| run.is_live() && bound(run, instance));
        if let (InstanceState::Destroying, true, Some(run)) = (to, from != to, user) {
            return Err(InstanceError::InUse { instance: instance.clone(), run: run.record.run_id.clone() });
        }
        state.instances[at].state = to;
        Ok(())
    }

    async fn instance(&self, instance: &InstanceId) -> Result<Option<Instance>, StoreError> {
        let state = self.lock();
        Ok(position(&state, instance).map(|at| state.instances[at].clone()))
    }

    async fn find_instance(
        &self,
        sandbox_key: &str,
        machine: Option<&str>,
    ) -> Result<Option<Instance>, StoreError> {
        let state = self.lock();
        let usable = state.instances.iter().filter(|instance| {
            instance.sandbox_key == sandbox_key
                && matches!(instance.state, InstanceState::Creating | InstanceState::Live)
                && (instance.machine.is_none() || instance.machine.as_deref() == machine)
        });
        // Of several of one time the last is taken, which was written last.
        Ok(usable.max_by_key(|instance| instance.created_at).cloned())
    }
}

fn position(state: &State, id: &InstanceId) -> Option<usize> {
    state.instances.iter().position(|instance| instance.instance_id == *id)
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

fn bound(run: &Run, id: &InstanceId) -> bool {
    run.record.instance_id.as_ref() == Some(id)
}

/// The claimed run, where it is bound to the instance or may be.
fn bindable<'a>(
    state: &'a mut State,
    token: &ClaimToken,
    id: &InstanceId,
) -> Result<&'a mut Run, InstanceError> {
    let run = state.fenced(token)?;
    if run.record.phase == Phase::Launched && !bound(run, id) {
        // Its agent is in the other instance: bound here it could never be reached again.
        let message = format!("run {:?} is launched in another instance than {id:?}", token.run_id);
        return Err(defect(message).into());
    }
    Ok(run)
}

fn bind(run: &mut Run, to: &Instance) {
    run.record.phase = Phase::Launching;
    run.record.instance_id = Some(to.instance_id.clone());
    run.record.sandbox_key = Some(to.sandbox_key.clone());
    run.record.machine.clone_from(&to.machine);
}
