//! Storing chunks, many at a time.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use futures_util::stream::{self, FuturesUnordered, StreamExt};
use tokio::sync::mpsc;

use super::SnapshotError;
use super::hashing::News;
use crate::objects::{Objects, ObjectsError};
use crate::workspace::Digest;
use crate::workspace::content::compress;
use crate::workspace::files::{HashFailed, Hashed};
use crate::workspace::keys::Object;
use crate::workspace::threads::Pool;

/// Requests at a time.
const REQUESTS: usize = 32;
/// Bytes of chunks that wait for their request at most, give or take a chunk.
const BYTES_IN_FLIGHT: usize = 32 << 20;

/// Which of these chunks are stored.
pub(super) async fn look_up(
    objects: &Objects,
    chunks: HashSet<Digest>,
) -> Result<HashMap<Digest, bool>, ObjectsError> {
    let mut answers = stream::iter(chunks)
        .map(|digest| async move {
            let there = objects.head(&Object::chunk(digest).key()).await?.is_some();
            Ok::<_, ObjectsError>((digest, there))
        })
        .buffer_unordered(REQUESTS);
    let mut found = HashMap::new();
    while let Some(answer) = answers.next().await {
        let (digest, there) = answer?;
        found.insert(digest, there);
    }
    Ok(found)
}

/// What was stored.
#[derive(Debug, Default)]
pub(super) struct Uploaded {
    pub(super) objects: u64,
    pub(super) bytes: u64,
}

/// Takes what the threads tell, until they are done: stores chunks that are missing, hands each file on.
pub(super) async fn upload(
    objects: &Objects,
    pool: &Pool,
    known: &HashMap<Digest, bool>,
    mut news: mpsc::Receiver<News>,
    mut each: impl FnMut(usize, Result<Hashed, HashFailed>) -> Result<(), SnapshotError>,
) -> Result<Uploaded, SnapshotError> {
    let mut uploaded = Uploaded::default();
    let mut requests = FuturesUnordered::new();
    let (mut waiting, mut open) = (0, true);
    while open || !requests.is_empty() {
        tokio::select! {
            next = news.recv(), if open && requests.len() < REQUESTS && waiting < BYTES_IN_FLIGHT => match next {
                None => open = false,
                Some(News::File(index, hashed)) => each(index, hashed)?,
                Some(News::Chunk(digest, chunk)) => {
                    waiting += chunk.len();
                    let known = known.get(&digest).copied();
                    requests.push(async move { (chunk.len(), store(objects, pool, known, digest, chunk).await) });
                }
            },
            Some((length, stored)) = requests.next(), if !requests.is_empty() => {
                waiting -= length;
                if let Some(bytes) = stored? {
                    uploaded.objects += 1;
                    uploaded.bytes += bytes;
                }
            }
        }
    }
    Ok(uploaded)
}

/// Stores a chunk if it is missing; how many bytes that took.
async fn store(
    objects: &Objects,
    pool: &Pool,
    known: Option<bool>,
    digest: Digest,
    chunk: Vec<u8>,
) -> Result<Option<u64>, SnapshotError> {
    let key = Object::chunk(digest).key();
    let there = match known {
        Some(there) => there,
        None => objects.head(&key).await?.is_some(),
    };
    if there {
        return Ok(None);
    }
    let body = Bytes::from(compressed(pool, chunk).await?);
    let bytes = body.len() as u64;
    objects.put_unsynced(&key, body).await?;
    Ok(Some(bytes))
}

/// Compresses on another thread.
pub(super) async fn compressed(pool: &Pool, bytes: Vec<u8>) -> Result<Vec<u8>, SnapshotError> {
    let internal = |message: String| SnapshotError::Internal { message };
    let body = pool.run(move || compress(&bytes)).await.map_err(|died| internal(died.to_string()))?;
    body.map_err(|error| internal(format!("cannot compress: {error}")))
}
