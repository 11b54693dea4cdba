//! The way to sessions.

use std::sync::Arc;

use outlast_core::ledger::{OFFLOAD_BYTES, SessionId};
use outlast_core::{OwnerId, Tenant, ThreadId};
use outlast_store::{Ports, Store};

use crate::bodies::Bodies;
use crate::objects::Objects;
use crate::workspace::Workspaces;

/// Sessions of one deployment: ledgers in a store, bodies and snapshots in object storage. Cheap to clone. Needs a Tokio
/// runtime.
#[derive(Debug, Clone)]
pub struct Sessions {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) objects: Objects,
    pub(crate) ports: Ports,
    pub(crate) owner: OwnerId,
    deployment: Arc<str>,
    offload: usize,
}

impl Sessions {
    /// Those of the store with this deployment id. `owner` is who holds leases.
    pub fn new(
        store: Arc<dyn Store>,
        objects: Objects,
        ports: Ports,
        owner: OwnerId,
        deployment: &str,
    ) -> Sessions {
        Sessions { store, objects, ports, owner, deployment: deployment.into(), offload: OFFLOAD_BYTES }
    }

    /// The same with another bound above which bodies are off-loaded: [`Bodies::offload_above`].
    pub fn offload_above(self, bytes: usize) -> Sessions {
        Sessions { offload: bytes, ..self }
    }

    /// The session of a thread, whether or not there is one yet.
    pub fn id_of(&self, tenant: &Tenant, thread: &ThreadId) -> SessionId {
        SessionId::of(&self.deployment, tenant, thread)
    }

    /// The durable state.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Object storage.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Off-loaded bodies.
    pub fn bodies(&self) -> Bodies {
        Bodies::new(self.objects.clone()).offload_above(self.offload)
    }

    /// Snapshots of workspaces.
    pub fn workspaces(&self) -> Workspaces {
        Workspaces::new(self.objects.clone())
    }
}
