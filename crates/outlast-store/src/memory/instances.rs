//! Sandboxes that were created, or are to be.

use async_trait::async_trait;
use outlast_core::decide::{self, ReclaimFacts};
use outlast_core::run::{ClaimToken, EndReason, Phase};
use outlast_core::{InstanceId, OwnerId};

use super::MemoryStore;
use super::handle::defect;
use super::state::{Now, Run, State};
use crate::{
    BeginReclaim, Instance, InstanceError, InstanceState, Instances, ListInstances, Reclaim, ReclaimEnd,
    ReclaimError, StoreError,
};

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
        state.instances.push(Instance { reclaim: None, ..instance.clone() });
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
            if let Some(at) = position(&state, instance) {
                state.instances[at].reclaim = None;
            }
            drop(state);
            self.signals.run_changed(&token.run_id);
        }
        Ok(())
    }

    async fn instance_created(&self, instance: &InstanceId) -> Result<(), InstanceError> {
        let mut state = self.lock();
        let at = position(&state, instance).ok_or_else(|| InstanceError::NotFound(instance.clone()))?;
        let found = &mut state.instances[at];
        match found.state {
            InstanceState::Creating | InstanceState::Live => found.state = InstanceState::Live,
            InstanceState::Destroying | InstanceState::Gone => {
                return Err(InstanceError::Destroying(instance.clone()));
            }
        }
        Ok(())
    }

    async fn begin_reclaim(&self, request: &BeginReclaim) -> Result<Instance, ReclaimError> {
        let now = self.now();
        let BeginReclaim { instance_id, owner, lease, forced } = request;
        let mut state = self.lock();
        let at = position(&state, instance_id).ok_or_else(|| ReclaimError::NotFound(instance_id.clone()))?;
        let user = state.runs.iter().find(|run| run.is_live() && bound(run, instance_id));
        let found = &state.instances[at];
        let reclaim = found.reclaim.as_ref();
        let held_until = state.destroyers.get(instance_id).copied().unwrap_or(0);
        let facts = ReclaimFacts {
            gone: found.state == InstanceState::Gone,
            due_in: reclaim.map(|reclaim| reclaim.at.saturating_sub(now.wall)),
            user: user.map(|run| run.record.run_id.clone()),
            holder: reclaim
                .and_then(|reclaim| reclaim.owner.clone())
                .map(|owner| (owner, held_until.saturating_sub(now.wall))),
        };
        decide::reclaim(&facts, owner, *forced)?;
        state.destroyers.insert(instance_id.clone(), Now::plus(now.wall, *lease));
        let found = &mut state.instances[at];
        found.state = InstanceState::Destroying;
        let before = found.reclaim.take();
        found.reclaim = Some(Reclaim {
            at: before.as_ref().map_or(now.wall, |reclaim| reclaim.at.min(now.wall)),
            failed: before.as_ref().map_or(0, |reclaim| reclaim.failed),
            error: before.and_then(|reclaim| reclaim.error),
            owner: Some(owner.clone()),
        });
        Ok(found.clone())
    }

    async fn end_reclaim(
        &self,
        instance: &InstanceId,
        owner: &OwnerId,
        end: &ReclaimEnd,
    ) -> Result<(), StoreError> {
        let now = self.now();
        let mut state = self.lock();
        let Some(at) = position(&state, instance) else { return Ok(()) };
        let found = &mut state.instances[at];
        if found.state != InstanceState::Destroying {
            return Ok(());
        }
        match (end, &mut found.reclaim) {
            (ReclaimEnd::Gone, _) => {
                found.state = InstanceState::Gone;
                found.reclaim = None;
            }
            (ReclaimEnd::Failed { error }, Some(reclaim)) if reclaim.owner.as_ref() == Some(owner) => {
                reclaim.failed += 1;
                reclaim.at = now.wall + decide::reclaim_retry(reclaim.failed);
                reclaim.error = Some(error.clone());
                reclaim.owner = None;
            }
            (ReclaimEnd::Failed { .. }, _) => {}
        }
        Ok(())
    }

    async fn list_instances(&self, query: &ListInstances) -> Result<Vec<Instance>, StoreError> {
        let now = self.now();
        let state = self.lock();
        let key = |instance: &Instance| (instance.created_at, instance.instance_id.clone());
        let due = |instance: &Instance| {
            let held = state.destroyers.get(&instance.instance_id).is_some_and(|until| *until > now.wall);
            instance
                .reclaim
                .as_ref()
                .is_some_and(|reclaim| reclaim.at <= now.wall && (reclaim.owner.is_none() || !held))
        };
        let mut found: Vec<&Instance> = state
            .instances
            .iter()
            .filter(|instance| instance.state != InstanceState::Gone)
            .filter(|instance| match (&query.machine, &instance.machine) {
                (Some(wanted), Some(machine)) => wanted == machine,
                _ => true,
            })
            .filter(|instance| !query.due || due(instance))
            .filter(|instance| query.after.as_ref().is_none_or(|after| key(instance) > *after))
            .collect();
        found.sort_by_key(|instance| key(instance));
        Ok(found.into_iter().take(query.limit).cloned().collect())
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

fn bound(run: &Run, id: &InstanceId) -> bool {
    run.record.instance_id.as_ref() == Some(id)
}

impl State {
    /// Says when the instance of a run that has just ended like this is due to be destroyed.
    pub(super) fn reclaim_after_end(
        &mut self,
        instance: Option<&InstanceId>,
        reason: Option<EndReason>,
        now: &Now,
    ) {
        let (Some(instance), Some(reason)) = (instance, reason) else { return };
        let Some(at) = position(self, instance) else { return };
        let found = &mut self.instances[at];
        if matches!(found.state, InstanceState::Creating | InstanceState::Live)
            && let Some(after) = decide::reclaim_after(reason, found.keep_alive)
        {
            found.reclaim = Some(Reclaim { at: now.wall + after, failed: 0, error: None, owner: None });
        }
    }
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
