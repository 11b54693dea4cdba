//! Which processes live: each holds a lock on `owners/<its id>` for life.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use outlast_core::{OwnerId, encoding};
use outlast_store::StoreError;

use super::lock::{Mode, is_locked, try_lock};
use super::make_directory;
use crate::failure::unavailable;

/// Marks a file that is not in its place yet. No encoded id begins with a dot.
const PREPARED: &str = ".new-";

/// How old a file that is still not in its place must be to be one that a dead process left, in seconds.
const ABANDONED_AFTER: u64 = 3600;

/// The owners of a data directory, and this process among them.
#[derive(Debug)]
pub(crate) struct Owners {
    dir: PathBuf,
    own: OwnerId,
    path: PathBuf,
    /// Locked as long as it is open.
    _file: File,
}

impl Owners {
    /// Makes this process known. Refused where a living process has the same id.
    pub(crate) fn join(data_dir: &Path, own: &OwnerId) -> Result<Self, StoreError> {
        let dir = data_dir.join("owners");
        make_directory(&dir)?;
        let name = encoding::encode(own.as_str());
        let path = dir.join(&name);
        let joined = (|| {
            let prepared = dir.join(format!("{PREPARED}{name}"));
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&prepared)?;
            if !try_lock(&file, Mode::Exclusive)? || locked_at(&path)? {
                return Ok(None);
            }
            // Locked before it is in its place: whoever finds it there unlocked knows that its process is dead.
            std::fs::rename(&prepared, &path)?;
            Ok(Some(file))
        })();
        let told = |error: io::Error| unavailable(format!("cannot lock {}: {error}", path.display()));
        let Some(file) = joined.map_err(told)? else {
            return Err(StoreError::Unusable {
                message: format!(
                    "a living process already uses the owner id {own:?} in {}: every process needs an id of its own",
                    data_dir.display()
                ),
            });
        };
        Ok(Owners { dir, own: own.clone(), path, _file: file })
    }

    /// This process.
    pub(crate) fn own(&self) -> &OwnerId {
        &self.own
    }

    /// Whether the owner lives. Where that cannot be found out it counts as living: its leases run out by themselves.
    pub(crate) fn is_alive(&self, owner: &str) -> bool {
        owner == self.own.as_str()
            || locked_at(&self.dir.join(encoding::encode(owner))).unwrap_or_else(|error| {
                tracing::warn!(owner, %error, "cannot tell whether an owner lives");
                true
            })
    }

    /// Removes what dead processes left. `now` in milliseconds since 1970.
    pub(crate) fn clean(&self, now: u64) {
        let Ok(entries) = std::fs::read_dir(&self.dir) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let left_behind = if name.starts_with(PREPARED) {
                // Between its making and its locking a process may be at work.
                entry.metadata().and_then(|facts| facts.modified()).is_ok_and(|time| {
                    time.duration_since(std::time::UNIX_EPOCH)
                        .is_ok_and(|made| made.as_secs() + ABANDONED_AFTER < now / 1000)
                })
            } else {
                encoding::decode(name).is_some()
            };
            if left_behind && matches!(locked_at(&entry.path()), Ok(false)) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    /// Takes this process off the list; its lock goes with the value.
    pub(crate) fn leave(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Whether there is a file that somebody has locked. A file that is not there is locked by nobody.
fn locked_at(path: &Path) -> io::Result<bool> {
    match OpenOptions::new().read(true).open(path) {
        Ok(file) => is_locked(&file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        // No process can have made a file of that name.
        Err(error) if error.raw_os_error() == Some(libc::ENAMETOOLONG) => Ok(false),
        Err(error) => Err(error),
    }
}
