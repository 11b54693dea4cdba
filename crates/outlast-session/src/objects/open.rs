//! From a directory or a URL to a store.

use std::path::Path as FilePath;
use std::sync::Arc;

use object_store::local::LocalFileSystem;

use super::store::Local;
use super::{Objects, ObjectsError};

impl Objects {
    /// Opens a directory (a path, or `file://…`), which is made where it is missing, or a bucket: `s3://bucket/prefix`,
    /// `gs://…`, `az://…`. `options` are what the environment says of it (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT`,
    /// `GOOGLE_SERVICE_ACCOUNT`, `AZURE_STORAGE_ACCOUNT_NAME` …); names that mean nothing to it are ignored.
    pub fn open(
        place: &str,
        options: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Objects, ObjectsError> {
        match Objects::directory_of(place) {
            Some(path) => directory(place, FilePath::new(path)),
            None => bucket(place, options),
        }
    }

    /// The directory that a place names; none where it names a bucket.
    pub fn directory_of(place: &str) -> Option<&str> {
        match place.split_once("://") {
            None => Some(place),
            Some(("file", path)) => Some(path),
            Some(_) => None,
        }
    }
}

fn directory(place: &str, path: &FilePath) -> Result<Objects, ObjectsError> {
    let refuse = |reason: String| ObjectsError::Place { place: place.to_owned(), reason };
    std::fs::create_dir_all(path)
        .map_err(|error| refuse(format!("the directory cannot be made: {error}")))?;
    let open = || LocalFileSystem::new_with_prefix(path).map_err(|error| refuse(error.to_string()));
    let directory = path.canonicalize().map_err(|error| refuse(error.to_string()))?;
    let local = Local { unsynced: Arc::new(open()?), directory };
    Ok(Objects::new(place, Arc::new(open()?.with_fsync(true)), Some(local)))
}

#[cfg(feature = "cloud")]
fn bucket(place: &str, options: impl IntoIterator<Item = (String, String)>) -> Result<Objects, ObjectsError> {
    let refuse = |reason: String| ObjectsError::Place { place: place.to_owned(), reason };
    let url = url::Url::parse(place).map_err(|error| refuse(error.to_string()))?;
    if !["s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "http", "https"].contains(&url.scheme()) {
        return Err(refuse("name a directory, or a bucket as s3://…, gs://… or az://…".to_owned()));
    }
    // The client takes whichever is installed; an error means that one is.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Names are compared in lower case; what is not meant for the store is no reason to refuse it.
    let options = options.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value));
    let (store, prefix) =
        object_store::parse_url_opts(&url, options).map_err(|error| refuse(error.to_string()))?;
    let store: Arc<dyn object_store::ObjectStore> = if prefix == object_store::path::Path::default() {
        Arc::from(store)
    } else {
        Arc::new(object_store::prefix::PrefixStore::new(store, prefix))
    };
    Ok(Objects::new(place, store, None))
}

#[cfg(not(feature = "cloud"))]
fn bucket(
    place: &str,
    _options: impl IntoIterator<Item = (String, String)>,
) -> Result<Objects, ObjectsError> {
    let reason = "this program is built for directories only (feature \"cloud\")".to_owned();
    Err(ObjectsError::Place { place: place.to_owned(), reason })
}
