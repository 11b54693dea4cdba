//! One reader for what belongs together: it looks into the quarantine once, if it has to.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use outlast_core::WorkspaceRef;
use tokio::sync::Mutex;

use super::WorkspaceReadError;
use crate::objects::{Objects, ObjectsError};
use crate::workspace::content::{decompress, max_body_bytes};
use crate::workspace::keys::{self, Object, QUARANTINE};
use crate::workspace::threads::Pool;
use crate::workspace::{Digest, MAX_CHUNK_BYTES, MAX_MANIFEST_BYTES, Manifest};

/// So often the quarantine is listed at most: a collection may put something aside after the first time.
const MAX_LISTINGS: u64 = 3;

/// Reads chunks and manifests.
#[derive(Debug, Clone)]
pub(in crate::workspace) struct Reader {
    objects: Objects,
    pool: Arc<Pool>,
    quarantine: Arc<Mutex<Quarantine>>,
}

#[derive(Debug, Default)]
struct Quarantine {
    listings: u64,
    keys: HashMap<Object, Vec<String>>,
}

impl Reader {
    /// With so many threads that decompress and verify.
    pub(in crate::workspace) fn new(objects: &Objects, threads: usize) -> Reader {
        Reader { objects: objects.clone(), pool: Arc::new(Pool::new(threads)), quarantine: Arc::default() }
    }

    /// A manifest that is what its name says.
    pub(in crate::workspace) async fn manifest(
        &self,
        reference: &WorkspaceRef,
    ) -> Result<Manifest, WorkspaceReadError> {
        let object = Object::manifest(reference);
        let bytes = self.verified(object, MAX_MANIFEST_BYTES).await?;
        let key = object.key();
        let decoded = self.pool.run(move || Manifest::decode(&bytes)).await;
        match decoded {
            Ok(decoded) => decoded.map_err(|source| WorkspaceReadError::Manifest { key, source }),
            Err(died) => Err(WorkspaceReadError::Internal { key, message: died.to_string() }),
        }
    }

    /// The bytes of a chunk that is what its name says and has at most so many.
    pub(in crate::workspace) async fn chunk(
        &self,
        digest: Digest,
        max: u64,
    ) -> Result<Vec<u8>, WorkspaceReadError> {
        self.verified(Object::chunk(digest), max.min(MAX_CHUNK_BYTES as u64)).await
    }

    async fn verified(&self, object: Object, max: u64) -> Result<Vec<u8>, WorkspaceReadError> {
        let listings = self.quarantine.lock().await.listings;
        let first = match self.at(&object, object.key(), max).await {
            Err(error) if may_lie_elsewhere(&error) => error,
            answer => return answer,
        };
        for key in self.put_aside(&object, listings).await? {
            match self.at(&object, key, max).await {
                Err(error) if may_lie_elsewhere(&error) => {}
                answer => return answer,
            }
        }
        // A collection may have put it back between the two.
        match self.at(&object, object.key(), max).await {
            Err(error) if may_lie_elsewhere(&error) => Err(first),
            answer => answer,
        }
    }

    /// Where the object lies in the quarantine, the newest first; known from a listing that is newer than the first
    /// `listings`, if it lies nowhere.
    async fn put_aside(&self, object: &Object, listings: u64) -> Result<Vec<String>, ObjectsError> {
        let mut quarantine = self.quarantine.lock().await;
        let stale = quarantine.listings <= listings && quarantine.listings < MAX_LISTINGS;
        if stale && !quarantine.keys.contains_key(object) {
            let mut keys: HashMap<Object, Vec<String>> = HashMap::new();
            for listed in self.objects.list(QUARANTINE).await?.into_iter().rev() {
                if let Some(place) = keys::parse(&listed.key) {
                    keys.entry(place.object).or_default().push(listed.key);
                }
            }
            *quarantine = Quarantine { listings: quarantine.listings + 1, keys };
        }
        Ok(quarantine.keys.get(object).cloned().unwrap_or_default())
    }

    async fn at(&self, object: &Object, key: String, max: u64) -> Result<Vec<u8>, WorkspaceReadError> {
        let body = match self.objects.get(&key, max_body_bytes(max)).await {
            Ok(body) => body,
            Err(ObjectsError::NotFound { key }) => return Err(WorkspaceReadError::Missing { key }),
            Err(ObjectsError::TooLarge { key, max }) => {
                let message = format!("it has more than {max} bytes");
                return Err(WorkspaceReadError::Corrupt { key, message });
            }
            Err(error) => return Err(error.into()),
        };
        let digest = object.digest;
        match self.pool.run(move || verify(&body, digest, max)).await {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(message)) => Err(WorkspaceReadError::Corrupt { key, message }),
            Err(died) => Err(WorkspaceReadError::Internal { key, message: died.to_string() }),
        }
    }
}

fn may_lie_elsewhere(error: &WorkspaceReadError) -> bool {
    matches!(error, WorkspaceReadError::Missing { .. } | WorkspaceReadError::Corrupt { .. })
}

fn verify(body: &Bytes, digest: Digest, max: u64) -> Result<Vec<u8>, String> {
    let bytes = decompress(body, max).map_err(|error| error.to_string())?;
    match Digest::of(&bytes) {
        found if found == digest => Ok(bytes),
        found => Err(format!("its digest is {}", found.hex())),
    }
}
