//! Object storage that tells what is done to it, and fails when it is told to.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::trouble::Trouble;

#[derive(Debug)]
pub struct Storage {
    pub inner: Arc<InMemory>,
    pub trouble: Arc<Trouble>,
}

impl Storage {
    fn ask(&self, what: &str, key: &Path) -> Result<()> {
        match self.trouble.goes(&format!("{what} {key}")) {
            true => Ok(()),
            false => Err(Error::Generic { store: "told", source: format!("{what} fails").into() }),
        }
    }
}

impl std::fmt::Display for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("told")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Storage {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.ask("put", location)?;
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
        self.ask("get", location)?;
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let (inner, trouble) = (self.inner.clone(), self.trouble.clone());
        let delete = move |location: Result<Path>| {
            let storage = Storage { inner: inner.clone(), trouble: trouble.clone() };
            async move {
                let location = location?;
                storage.ask("delete", &location)?;
                object_store::ObjectStoreExt::delete(&*storage.inner, &location).await?;
                Ok(location)
            }
        };
        locations.then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        if let Err(error) = self.ask("list", &prefix.cloned().unwrap_or_default()) {
            return stream::once(async move { Err(error) }).boxed();
        }
        let trouble = self.trouble.clone();
        let dated = move |meta: Result<ObjectMeta>| {
            let mut meta = meta?;
            if let Some(modified) = trouble.modified.lock().unwrap().get(meta.location.as_ref()) {
                meta.last_modified = (UNIX_EPOCH + Duration::from_millis(*modified)).into();
            }
            Ok(meta)
        };
        self.inner.list(prefix).map(dated).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.ask("copy", from)?;
        self.inner.copy_opts(from, to, options).await
    }
}
