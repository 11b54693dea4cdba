//! Putting bodies, and getting them back.

use bytes::Bytes;
use outlast_core::ledger::{Envelope, OFFLOAD_BYTES, Pointer, PointerError, SessionId};
use sha2::{Digest, Sha256};

use super::BodyError;
use crate::objects::{Objects, ObjectsError};

/// The kind of a body that is an event. A ledger has no such record.
pub(super) const EVENT: &str = "event";
/// The kind of a record that is itself a pointer, which a body never is.
const POINTER: &str = "pointer";

/// Bodies in object storage. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Bodies {
    objects: Objects,
    /// What is larger is off-loaded, in bytes.
    pub(super) offload: usize,
}

impl Bodies {
    /// Those that lie in this storage, beneath `sessions/`.
    pub fn new(objects: Objects) -> Bodies {
        Bodies { objects, offload: OFFLOAD_BYTES }
    }

    /// The same with another bound above which bodies are off-loaded than [`OFFLOAD_BYTES`]: for tests, which want large
    /// bodies that are small, and for embedders whose database likes them smaller.
    pub fn offload_above(self, bytes: usize) -> Bodies {
        Bodies { offload: bytes, ..self }
    }

    /// Puts a body, durable before it returns. What points to it is to be added after, and only if no collection has begun
    /// since before the put.
    pub async fn put(&self, session: &SessionId, envelope: &Envelope) -> Result<Pointer, ObjectsError> {
        let encoded = envelope.encode().into_bytes();
        let pointer = Pointer::new(session, &Sha256::digest(&encoded), encoded.len() as u64);
        self.objects.put(&pointer.key, Bytes::from(encoded)).await?;
        Ok(pointer)
    }

    /// The body to which the record with this kind and id points. Size, digest, kind and id are verified.
    pub async fn get(
        &self,
        session: &SessionId,
        pointer: &Pointer,
        kind: &str,
        id: &str,
    ) -> Result<Envelope, BodyError> {
        let digest = pointer.check(session)?;
        let key = || pointer.key.clone();
        let damaged = |what: String| BodyError::Pointer(PointerError::Damaged { key: key(), what });
        let body = match self.objects.get(&pointer.key, pointer.size).await {
            Ok(body) => body,
            Err(ObjectsError::NotFound { .. }) => return Err(PointerError::Missing { key: key() }.into()),
            Err(ObjectsError::TooLarge { .. }) => {
                return Err(damaged(format!("it has more than the {} bytes that were put", pointer.size)));
            }
            Err(error) => return Err(error.into()),
        };
        if body.len() as u64 != pointer.size {
            return Err(damaged(format!("it has {} bytes of {}", body.len(), pointer.size)));
        }
        if outlast_core::hex::encode(&Sha256::digest(&body)) != digest {
            return Err(damaged("its digest is another".to_owned()));
        }
        let envelope = Envelope::decode(&body).map_err(|error| damaged(error.to_string()))?;
        if envelope.kind == POINTER {
            return Err(PointerError::Nested { key: key() }.into());
        }
        if (envelope.kind.as_str(), envelope.id.as_str()) != (kind, id) {
            return Err(damaged(format!("it is {} {:?}, not {kind} {id:?}", envelope.kind, envelope.id)));
        }
        Ok(envelope)
    }
}
