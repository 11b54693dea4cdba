//! Storage in memory that counts what is done to it, and fails when it is told to.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

#[derive(Debug)]
pub struct Troubled {
    pub inner: InMemory,
    /// After so many operations each one fails.
    left: AtomicI64,
    /// What was done: `put`, `get`, `head`, `delete`, `copy`, `list`, and the key.
    done: Mutex<Vec<(&'static str, String)>>,
}

impl Default for Troubled {
    fn default() -> Self {
        Troubled { inner: InMemory::new(), left: i64::MAX.into(), done: Mutex::default() }
    }
}

impl Troubled {
    /// Every operation after so many fails.
    pub fn fail_after(&self, operations: i64) {
        self.left.store(operations, Ordering::SeqCst);
    }

    pub fn heal(&self) {
        self.fail_after(i64::MAX);
    }

    /// What was done since the last time that this was asked.
    pub fn take(&self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut self.done.lock().unwrap())
    }

    /// The keys, sorted.
    pub async fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> =
            self.inner.list(None).map(|m| m.unwrap().location.to_string()).collect().await;
        keys.sort();
        keys
    }

    pub async fn remove(&self, key: &str) {
        self.inner.delete(&Path::from(key)).await.unwrap();
    }

    pub async fn write(&self, key: &str, body: &[u8]) {
        self.inner.put(&Path::from(key), PutPayload::from(body.to_vec())).await.unwrap();
    }

    pub async fn read(&self, key: &str) -> Vec<u8> {
        self.inner.get(&Path::from(key)).await.unwrap().bytes().await.unwrap().to_vec()
    }

    fn operation(&self, what: &'static str, key: &Path) -> Result<()> {
        self.done.lock().unwrap().push((what, key.to_string()));
        if self.left.fetch_sub(1, Ordering::SeqCst) > 0 {
            return Ok(());
        }
        Err(object_store::Error::Generic { store: "troubled", source: format!("{what} fails").into() })
    }
}

impl std::fmt::Display for Troubled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("troubled")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Troubled {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.operation("put", location)?;
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.operation(if options.head { "head" } else { "get" }, location)?;
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        // One at a time: all that is used here.
        let locations: Vec<_> = futures_util::FutureExt::now_or_never(locations.collect::<Vec<_>>()).unwrap();
        for location in locations.iter().flatten() {
            if let Err(error) = self.operation("delete", location) {
                return futures_util::stream::once(async move { Err(error) }).boxed();
            }
        }
        self.inner.delete_stream(futures_util::stream::iter(locations).boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.operation("list", &prefix.cloned().unwrap_or_default()) {
            Ok(()) => self.inner.list(prefix),
            Err(error) => futures_util::stream::once(async move { Err(error) }).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.operation("copy", from)?;
        self.inner.copy_opts(from, to, options).await
    }
}
