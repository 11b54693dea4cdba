//! The engine.

use outlast_core::WorkspaceRef;

use super::Manifest;
use super::keys::{Object, QUARANTINE, parse};
use super::read::{Reader, WorkspaceReadError};
use crate::objects::{Objects, ObjectsError};

/// Snapshots of workspaces in object storage. Cheap to clone. Needs a Tokio runtime.
#[derive(Debug, Clone)]
pub struct Workspaces {
    pub(super) objects: Objects,
}

impl Workspaces {
    /// Those that lie in this storage, beneath `workspaces/`.
    pub fn new(objects: Objects) -> Workspaces {
        Workspaces { objects }
    }

    /// Whether the snapshot is there, or was put aside by a collection.
    pub async fn exists(&self, reference: &WorkspaceRef) -> Result<bool, ObjectsError> {
        let object = Object::manifest(reference);
        if self.objects.head(&object.key()).await?.is_some() {
            return Ok(true);
        }
        let aside = self.objects.list(QUARANTINE).await?;
        Ok(aside.iter().filter_map(|listed| parse(&listed.key)).any(|place| place.object == object))
    }

    /// What a snapshot holds, verified against its name. Also where a collection has put it aside.
    pub async fn manifest(&self, reference: &WorkspaceRef) -> Result<Manifest, WorkspaceReadError> {
        Reader::new(&self.objects, 1).manifest(reference).await
    }
}
