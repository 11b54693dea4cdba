//! A host's way to object storage.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use outlast_store::Clock;

use super::bucket::{Bucket, Object};
use super::plan::SessionsPlan;
use super::watch::Watch;
use crate::dice::Dice;
use crate::sim::clock::{HostClock, Time};
use crate::sim::gate::Gate;
use crate::sim::history::History;

/// Object storage that is slow, fails, does what it is told and says that it has failed, or says so and does it later.
#[derive(Debug, Clone)]
pub(super) struct SimObjects {
    pub name: String,
    pub bucket: Bucket,
    pub time: Time,
    /// How far the storage's clock is from the store's, in milliseconds.
    pub skew: i64,
    pub gate: Gate,
    pub dice: Dice,
    pub trouble: Arc<AtomicBool>,
    pub plan: SessionsPlan,
    pub history: History,
    pub watch: Arc<Watch>,
}

/// What becomes of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    Lost,
    Failed,
    Late(u64),
}

impl SimObjects {
    fn now(&self) -> u64 {
        HostClock { time: self.time, skew: self.skew, gate: None }.wall_ms()
    }

    /// The way there, after which the operation is carried out or not.
    async fn go(&self) -> Fate {
        self.gate.pass().await;
        let trouble = self.trouble.load(Ordering::Relaxed);
        let slow = trouble && self.dice.permille(self.plan.delay);
        let time = if slow { self.dice.between(100, 6000) } else { self.dice.between(1, 6) };
        self.time.sleep(Duration::from_millis(time)).await;
        self.gate.pass().await;
        if trouble && self.dice.permille(self.plan.late) {
            return Fate::Late(self.dice.between(10, 20_000));
        }
        if trouble && self.dice.permille(self.plan.fail) {
            return Fate::Failed;
        }
        if trouble && self.dice.permille(self.plan.lose) { Fate::Lost } else { Fate::Done }
    }

    /// The way back.
    async fn back(&self, what: &str, key: &str, fate: Fate) -> Result<()> {
        let outcome = match fate {
            Fate::Done => "ok".to_owned(),
            Fate::Lost => "ok, lost".to_owned(),
            Fate::Failed => "fails".to_owned(),
            Fate::Late(time) => format!("fails, and happens {time} ms later"),
        };
        self.history.note(format!("{} {what} {} {outcome}", self.name, short(key)));
        self.gate.pass().await;
        if fate == Fate::Done { Ok(()) } else { Err(away()) }
    }

    /// Carries a change out, now or later or never.
    fn change(&self, fate: Fate, work: impl FnOnce(&SimObjects, bool) + Send + 'static) {
        match fate {
            Fate::Failed => {}
            Fate::Done | Fate::Lost => work(self, false),
            Fate::Late(time) => {
                let objects = self.clone();
                tokio::spawn(async move {
                    objects.time.sleep(Duration::from_millis(time)).await;
                    work(&objects, true);
                });
            }
        }
    }

    async fn put(&self, key: String, body: Bytes) -> Result<()> {
        self.watch.putting(&key, &body);
        if self.trouble.load(Ordering::Relaxed) && self.dice.permille(self.plan.delete / 6) {
            // So slow that the session may be gone when it comes.
            self.watch.urge(&key);
            self.time.sleep(Duration::from_millis(self.dice.between(3000, 25_000))).await;
        }
        let fate = self.go().await;
        let to = key.clone();
        self.change(fate, move |objects, _| objects.bucket.put(&to, body, objects.now()));
        self.back("put", &key, fate).await
    }

    async fn delete(&self, key: String) -> Result<()> {
        // Looked at before the first wait: what whoever deletes has checked is so at this moment.
        let under = self.watch.deleting(&self.name, &key);
        let fate = self.go().await;
        let gone = key.clone();
        self.change(fate, move |objects, late| {
            objects.bucket.remove(&gone);
            objects.watch.deleted(&gone, under.filter(|_| !late));
        });
        self.back("delete", &key, fate).await
    }

    /// In two pages, as large listings come: what happens in between may be in the second and not in the first.
    async fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        let fate = self.go().await;
        let mut found = self.bucket.beneath(&prefix);
        found.truncate(found.len().div_ceil(2));
        self.back("list", &prefix, fate).await?;
        let fate = self.go().await;
        let last = found.last().map(|(key, _)| key.clone());
        let rest = self.bucket.beneath(&prefix);
        found.extend(rest.into_iter().filter(|(key, _)| last.as_ref().is_none_or(|last| key > last)));
        self.back("list more", &prefix, fate).await?;
        Ok(found.iter().map(|(key, object)| meta(key, object)).collect())
    }
}

/// What is enough to tell keys apart.
pub(super) fn short(key: &str) -> String {
    let part = |part: &str| part.chars().take(6).collect::<String>();
    key.split('/').map(part).collect::<Vec<_>>().join("/")
}

fn away() -> Error {
    Error::Generic { store: "simulated", source: "simulated".into() }
}

fn meta(key: &str, object: &Object) -> ObjectMeta {
    ObjectMeta {
        location: Path::from(key),
        last_modified: (UNIX_EPOCH + Duration::from_millis(object.modified)).into(),
        size: object.body.len() as u64,
        e_tag: None,
        version: None,
    }
}

impl std::fmt::Display for SimObjects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("simulated")
    }
}

#[async_trait]
impl ObjectStore for SimObjects {
    async fn put_opts(&self, location: &Path, payload: PutPayload, _: PutOptions) -> Result<PutResult> {
        self.put(location.to_string(), payload.into()).await?;
        Ok(PutResult { e_tag: None, version: None, extensions: Default::default() })
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Err(away())
    }

    async fn get_opts(&self, location: &Path, _: GetOptions) -> Result<GetResult> {
        let key = location.to_string();
        let fate = self.go().await;
        let found = self.bucket.get(&key);
        self.back("get", &key, fate).await?;
        let Some(object) = found else {
            return Err(Error::NotFound { path: key, source: "simulated".into() });
        };
        let meta = meta(&key, &object);
        let range = 0..meta.size;
        let payload = GetResultPayload::Stream(stream::once(async { Ok(object.body) }).boxed());
        Ok(GetResult { payload, meta, range, attributes: Default::default(), extensions: Default::default() })
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let objects = self.clone();
        let delete = move |location: Result<Path>| {
            let objects = objects.clone();
            async move {
                let location = location?;
                objects.delete(location.to_string()).await?;
                Ok(location)
            }
        };
        locations.then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (objects, prefix) = (self.clone(), prefix.map(ToString::to_string).unwrap_or_default());
        let listed = async move {
            match SimObjects::list(&objects, &prefix).await {
                Ok(found) => found.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            }
        };
        stream::once(listed).flat_map(stream::iter).boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        Err(away())
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(away())
    }
}
