//! What is left on the provider's side without a record.

use std::time::Duration;

use outlast_core::InstanceId;
use outlast_core::decide::{InstanceRow, OrphanFacts, OrphanStep, orphan};
use outlast_sandbox::Found;
use outlast_store::{InstanceState, StoreError};
use serde::Serialize;

use crate::{Host, fail};

/// What is so of an orphan, or has become of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum OrphanState {
    /// It may be a sandbox that is being made at this moment: it waits until it is old enough.
    TooYoung,
    /// No record knows of it. It is put aside next.
    Unrecorded,
    /// It was put aside.
    Quarantined,
    /// It was made, or put aside, so long ago that it is destroyed next.
    Due,
    /// It is gone.
    Destroyed,
    /// That did not succeed; it is tried again.
    Failed {
        /// Why.
        error: String,
    },
}

/// A sandbox of this deployment that no live record knows of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Orphan {
    /// Its name on the provider's side.
    pub name: String,
    /// Which it is.
    pub instance_id: InstanceId,
    /// Since when it has been there, or aside, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// What is so, or has become of it.
    #[serde(flatten)]
    pub state: OrphanState,
}

impl Host {
    /// Looks for orphans; with `act`, puts aside those of which nothing is recorded and destroys those that were put aside,
    /// or given up, at least `grace` ago. What does not carry this deployment's label is never touched, nor listed.
    pub async fn orphans(&self, grace: Duration, act: bool) -> Result<Vec<Orphan>, String> {
        let host = &self.inner;
        let deployment = host.store.deployment_id().await.map_err(|error| error.to_string())?;
        let found = host.provider.list().await.map_err(|error| error.to_string())?;
        let now = host.ports.clock.wall_ms();
        let grace = outlast_core::duration::millis(grace);
        let mut orphans = Vec::new();
        for found in found {
            let Found { name, instance: Some(instance_id), quarantined, since } = found else {
                continue;
            };
            let ours = instance_id.is_of(&deployment);
            if !ours {
                continue;
            }
            let row = match self.row(&instance_id).await {
                Ok(row) => row,
                // Lookup failed: keep.
                Err(error) => {
                    let state = OrphanState::Failed { error: error.to_string() };
                    orphans.push(Orphan { name, instance_id, since, state });
                    continue;
                }
            };
            // A clock that went back makes nothing older.
            let age = since.map(|since| now.saturating_sub(since));
            let step = orphan(&OrphanFacts { ours, row, quarantined, age }, grace);
            let state = match step {
                OrphanStep::NotOurs | OrphanStep::Kept => continue,
                OrphanStep::TooYoung if quarantined => OrphanState::Quarantined,
                OrphanStep::TooYoung => OrphanState::TooYoung,
                OrphanStep::Quarantine if !act => OrphanState::Unrecorded,
                OrphanStep::Destroy if !act => OrphanState::Due,
                OrphanStep::Quarantine => {
                    fail::point("orphan.quarantine.before");
                    match host.provider.quarantine(&instance_id).await {
                        Ok(()) => OrphanState::Quarantined,
                        Err(error) => OrphanState::Failed { error: error.to_string() },
                    }
                }
                OrphanStep::Destroy => {
                    fail::point("orphan.destroy.before");
                    match host.provider.destroy(&instance_id).await {
                        Ok(()) => OrphanState::Destroyed,
                        Err(error) => OrphanState::Failed { error: error.to_string() },
                    }
                }
            };
            if act {
                tracing::warn!(name, ?state, "a sandbox that no record knows of");
            }
            orphans.push(Orphan { name, instance_id, since, state });
        }
        Ok(orphans)
    }

    async fn row(&self, instance: &InstanceId) -> Result<InstanceRow, StoreError> {
        let row = self.inner.store.instance(instance).await?;
        Ok(match row.map(|row| row.state) {
            None => InstanceRow::Missing,
            Some(InstanceState::Gone) => InstanceRow::Gone,
            Some(InstanceState::Creating | InstanceState::Live | InstanceState::Destroying) => {
                InstanceRow::Kept
            }
        })
    }
}
