//! The objects that there are.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// An object.
#[derive(Debug, Clone)]
pub(super) struct Object {
    pub body: Bytes,
    /// When it was put last, in milliseconds since 1970 on the storage's clock.
    pub modified: u64,
    /// The how-manieth change of anything that was.
    pub step: u64,
}

/// What all hosts share.
#[derive(Debug, Clone, Default)]
pub(super) struct Bucket(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    objects: BTreeMap<String, Object>,
    step: u64,
}

impl Bucket {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells what comes after from what came before.
    pub fn step(&self) -> u64 {
        let mut inner = self.lock();
        inner.step += 1;
        inner.step
    }

    pub fn put(&self, key: &str, body: Bytes, modified: u64) {
        let step = self.step();
        self.lock().objects.insert(key.to_owned(), Object { body, modified, step });
    }

    pub fn remove(&self, key: &str) -> bool {
        self.lock().objects.remove(key).is_some()
    }

    pub fn get(&self, key: &str) -> Option<Object> {
        self.lock().objects.get(key).cloned()
    }

    /// Those whose keys begin so, by key.
    pub fn beneath(&self, prefix: &str) -> Vec<(String, Object)> {
        let inner = self.lock();
        let from = inner.objects.range(prefix.to_owned()..);
        from.take_while(|(key, _)| key.starts_with(prefix)).map(|(k, o)| (k.clone(), o.clone())).collect()
    }
}
