//! Reading and writing objects.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use super::{ObjectsError, sync};

/// Object storage. Cheap to clone. Needs a Tokio runtime.
#[derive(Debug, Clone)]
pub struct Objects {
    place: Arc<str>,
    store: Arc<dyn ObjectStore>,
    local: Option<Local>,
}

/// What a directory can do besides.
#[derive(Debug, Clone)]
pub(super) struct Local {
    /// Writes without waiting for the disk.
    pub(super) unsynced: Arc<LocalFileSystem>,
    pub(super) directory: PathBuf,
}

/// An object that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its key.
    pub key: String,
    /// Its size in bytes.
    pub size: u64,
    /// When it was written last, in milliseconds since 1970 on the storage's clock.
    pub modified: u64,
}

impl Objects {
    pub(super) fn new(place: &str, store: Arc<dyn ObjectStore>, local: Option<Local>) -> Objects {
        Objects { place: place.into(), store, local }
    }

    /// Any other store, under a name for people.
    pub fn of_store(place: &str, store: Arc<dyn ObjectStore>) -> Objects {
        Objects::new(place, store, None)
    }

    /// In memory, for tests and simulations.
    pub fn in_memory() -> Objects {
        Objects::of_store("memory", Arc::new(object_store::memory::InMemory::new()))
    }

    /// What was opened, for people.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The directory, where it is one.
    pub fn directory(&self) -> Option<&std::path::Path> {
        self.local.as_ref().map(|local| local.directory.as_path())
    }

    /// Writes the object, durable before it returns, in place of another one under its key.
    pub async fn put(&self, key: &str, body: Bytes) -> Result<(), ObjectsError> {
        write(&*self.store, key, body).await
    }

    /// As [`Objects::put`], but durable only after the next [`Objects::sync`]: for many objects at once.
    pub async fn put_unsynced(&self, key: &str, body: Bytes) -> Result<(), ObjectsError> {
        match &self.local {
            Some(local) => write(&*local.unsynced, key, body).await,
            None => self.put(key, body).await,
        }
    }

    /// Makes durable what was written under these keys before, by whomever.
    pub async fn sync(&self, keys: Vec<String>) -> Result<(), ObjectsError> {
        let Some(local) = &self.local else { return Ok(()) };
        let directory = local.directory.clone();
        let (done, answer) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let _ = done.send(sync::sync(&directory, &keys));
        });
        let fail = |message: String| ObjectsError::Failed { what: "write", key: String::new(), message };
        match answer.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(fail(error.to_string())),
            Err(_) => Err(fail("the thread that waits for the disk has died".to_owned())),
        }
    }

    /// The object, if it has at most so many bytes.
    pub async fn get(&self, key: &str, max: u64) -> Result<Bytes, ObjectsError> {
        let found = self.store.get(&path(key, "read")?).await.map_err(|error| lost("read", key, error))?;
        let too_large = || ObjectsError::TooLarge { key: key.to_owned(), max };
        if found.meta.size > max {
            return Err(too_large());
        }
        let body = found.bytes().await.map_err(|error| lost("read", key, error))?;
        if body.len() as u64 > max { Err(too_large()) } else { Ok(body) }
    }

    /// What is known of the object; none where there is none.
    pub async fn head(&self, key: &str) -> Result<Option<Listed>, ObjectsError> {
        match self.store.head(&path(key, "read")?).await {
            Ok(meta) => Ok(Some(listed(&meta))),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failed("read", key, error)),
        }
    }

    /// Every object whose key begins with this prefix of whole segments, by key. Complete, or an error.
    pub async fn list(&self, prefix: &str) -> Result<Vec<Listed>, ObjectsError> {
        let mut stream = self.store.list(Some(&path(prefix, "list")?));
        let mut found = Vec::new();
        while let Some(meta) = stream.next().await {
            found.push(listed(&meta.map_err(|error| failed("list", prefix, error))?));
        }
        found.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        Ok(found)
    }

    /// Deletes the object. Already gone is success.
    pub async fn delete(&self, key: &str) -> Result<(), ObjectsError> {
        match self.store.delete(&path(key, "delete")?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed("delete", key, error)),
        }
    }

    /// Copies an object, durable before it returns, in place of another one under the new key.
    pub async fn copy(&self, from: &str, to: &str) -> Result<(), ObjectsError> {
        let copied = self.store.copy(&path(from, "copy")?, &path(to, "copy")?).await;
        copied.map_err(|error| lost("copy", from, error))
    }
}

async fn write(store: &dyn ObjectStore, key: &str, body: Bytes) -> Result<(), ObjectsError> {
    store.put(&path(key, "write")?, body.into()).await.map_err(|error| failed("write", key, error))?;
    Ok(())
}

fn path(key: &str, what: &'static str) -> Result<Path, ObjectsError> {
    Path::parse(key).map_err(|error| ObjectsError::Failed {
        what,
        key: key.to_owned(),
        message: error.to_string(),
    })
}

fn listed(meta: &object_store::ObjectMeta) -> Listed {
    Listed {
        key: meta.location.to_string(),
        size: meta.size,
        modified: u64::try_from(meta.last_modified.timestamp_millis()).unwrap_or(0),
    }
}

/// Of what needs the object. To write or to list finds nothing where the bucket itself is not there: that has [`failed`].
fn lost(what: &'static str, key: &str, error: object_store::Error) -> ObjectsError {
    match error {
        object_store::Error::NotFound { .. } => ObjectsError::NotFound { key: key.to_owned() },
        error => failed(what, key, error),
    }
}

fn failed(what: &'static str, key: &str, error: object_store::Error) -> ObjectsError {
    ObjectsError::Failed { what, key: key.to_owned(), message: chain(&error) }
}

/// The error with all its causes: the first alone says little.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}
