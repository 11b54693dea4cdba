//! The directories of an instance.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use outlast_core::journal::files;
use outlast_core::{InstanceId, encoding};
use outlast_shim::lock;

use super::errors::{Attempting, failed};
use crate::{Found, ProviderError};

/// Before the name of what is being destroyed. No encoded id begins with a dot.
const TRASH: &str = ".trash-";
/// Before the name of what was put aside.
const QUARANTINE: &str = ".quarantine-";

/// The directory that holds all instances.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    root: PathBuf,
}

impl Layout {
    /// Makes the directory, readable for its owner only.
    pub(super) fn open(root: &Path) -> Result<Self, ProviderError> {
        let attempt = || format!("cannot make {}", root.display());
        let root = std::path::absolute(root).attempting(attempt)?;
        DirBuilder::new().recursive(true).mode(0o700).create(&root).attempting(attempt)?;
        Ok(Layout { root })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// An instance's directory. Encoded names have no separator and no leading dot, so no id leads elsewhere and none
    /// meets a name of the provider's own.
    fn instance(&self, instance: &InstanceId) -> PathBuf {
        self.root.join(encoding::encode(instance.as_str()))
    }

    fn trash(&self, instance: &InstanceId) -> PathBuf {
        self.root.join(format!("{TRASH}{}", encoding::encode(instance.as_str())))
    }

    fn quarantine_of(&self, instance: &InstanceId) -> PathBuf {
        self.root.join(format!("{QUARANTINE}{}", encoding::encode(instance.as_str())))
    }

    pub(super) fn runs(&self, instance: &InstanceId) -> PathBuf {
        self.instance(instance).join("runs")
    }

    pub(super) fn work(&self, instance: &InstanceId) -> PathBuf {
        self.instance(instance).join("work")
    }

    pub(super) fn prompts(&self, instance: &InstanceId) -> PathBuf {
        self.instance(instance).join("prompts")
    }

    /// Makes an instance. The runs directory comes last, since its existence says that the instance is complete; all
    /// names are synced before anything is launched in it.
    pub(super) fn create(&self, instance: &InstanceId, with_work: bool) -> Result<(), ProviderError> {
        let dir = self.instance(instance);
        let work = with_work.then(|| self.work(instance));
        for path in [Some(dir.clone()), work, Some(self.prompts(instance)), Some(self.runs(instance))] {
            let Some(path) = path else { continue };
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(failed(format!("cannot make {}: {error}", path.display())));
                }
                _ => {}
            }
        }
        for path in [&dir, &self.root] {
            sync_dir(path).attempting(|| format!("cannot sync {}", path.display()))?;
        }
        Ok(())
    }

    /// Whether the instance is complete.
    pub(super) fn exists(&self, instance: &InstanceId) -> Result<bool, ProviderError> {
        let runs = self.runs(instance);
        match fs::symlink_metadata(&runs) {
            Ok(metadata) => Ok(metadata.is_dir()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed(format!("cannot look at {}: {error}", runs.display()))),
        }
    }

    /// Destroys an instance. It is moved out of its place first: a shim that comes now finds no directory, and one that
    /// was faster holds its lock when the locks are looked at again. What an interrupted call has left is removed.
    pub(super) fn destroy(&self, instance: &InstanceId) -> Result<(), ProviderError> {
        self.destroy_after(instance, || {})
    }

    /// The same, with what happens between the first look at the locks and the move.
    fn destroy_after(&self, instance: &InstanceId, meanwhile: impl FnOnce()) -> Result<(), ProviderError> {
        let trash = self.trash(instance);
        self.empty_trash(&trash)?;
        if move_away(&self.instance(instance), &trash, meanwhile)? {
            self.empty_trash(&trash)?;
        }
        if move_away(&self.quarantine_of(instance), &trash, || {})? {
            self.empty_trash(&trash)?;
        }
        Ok(())
    }

    /// Puts an instance aside.
    pub(super) fn quarantine(&self, instance: &InstanceId) -> Result<(), ProviderError> {
        move_away(&self.instance(instance), &self.quarantine_of(instance), || {})?;
        sync_dir(&self.root).attempting(|| format!("cannot sync {}", self.root.display()))
    }

    /// The sizes of all journals together.
    pub(super) fn journal_bytes(&self) -> Result<u64, ProviderError> {
        let attempt = || format!("cannot list {}", self.root.display());
        let mut bytes = 0;
        for instance in fs::read_dir(&self.root).attempting(attempt)? {
            // What goes away while it is looked at takes no room.
            let Ok(runs) = fs::read_dir(instance.attempting(attempt)?.path().join("runs")) else { continue };
            for file in runs.flatten() {
                if file.file_name().as_encoded_bytes().ends_with(files::JOURNAL.as_bytes()) {
                    bytes += file.metadata().map_or(0, |metadata| metadata.len());
                }
            }
        }
        Ok(bytes)
    }

    /// Everything below the root that is a directory and none of the provider's own files.
    pub(super) fn list(&self) -> Result<Vec<Found>, ProviderError> {
        let attempt = || format!("cannot list {}", self.root.display());
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.root).attempting(attempt)? {
            let entry = entry.attempting(attempt)?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            // What goes away while it is looked at is not there.
            let Ok(metadata) = entry.metadata() else { continue };
            if !metadata.is_dir() {
                continue;
            }
            let (quarantined, encoded) = match (name.strip_prefix(QUARANTINE), name.strip_prefix(TRASH)) {
                (Some(encoded), _) => (true, encoded),
                // What an interrupted call has left is what it was about to destroy.
                (None, Some(encoded)) => (false, encoded),
                (None, None) => (false, &*name),
            };
            let instance = encoding::decode(encoded).and_then(|id| InstanceId::new(id).ok());
            // Moving a directory changes when it was changed, and not when its content was.
            let since = if quarantined { metadata.ctime() } else { metadata.mtime() };
            found.push(Found {
                name: name.into_owned(),
                instance,
                quarantined,
                since: u64::try_from(since).ok().map(|seconds| seconds.saturating_mul(1000)),
            });
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    fn empty_trash(&self, trash: &Path) -> Result<(), ProviderError> {
        match fs::symlink_metadata(trash) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(format!("cannot look at {}: {error}", trash.display()))),
            Ok(_) => {}
        }
        // A call that was interrupted between moving and looking again.
        refuse_while_locked(trash)?;
        remove_tree(trash).attempting(|| format!("cannot remove {}", trash.display()))?;
        sync_dir(&self.root).attempting(|| format!("cannot sync {}", self.root.display()))
    }
}

/// Moves an instance, if it is there, where no shim looks for it; back again, and an error, where one was faster.
fn move_away(from: &Path, to: &Path, meanwhile: impl FnOnce()) -> Result<bool, ProviderError> {
    refuse_while_locked(from)?;
    meanwhile();
    match fs::rename(from, to) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed(format!("cannot move {} away: {error}", from.display()))),
    }
    if let Err(held) = refuse_while_locked(to) {
        fs::rename(to, from).attempting(|| format!("cannot move {} back", from.display()))?;
        return Err(held);
    }
    Ok(true)
}

/// An error if a shim lives in the instance at this path.
fn refuse_while_locked(instance: &Path) -> Result<(), ProviderError> {
    let runs = instance.join("runs");
    let entries = match fs::read_dir(&runs) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(failed(format!("cannot look for live runs in {}: {error}", runs.display())));
        }
    };
    for entry in entries {
        let path = entry.attempting(|| format!("cannot look for live runs in {}", runs.display()))?.path();
        let is_lock =
            path.file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(files::LOCK.as_bytes()));
        if is_lock && lock::is_held(&path).attempting(|| format!("cannot ask for {}", path.display()))? {
            return Err(failed(format!("a run is still live in the sandbox: {} is locked", path.display())));
        }
    }
    Ok(())
}

/// Removes a directory and everything in it; links are removed, never followed. Agents leave directories without write
/// permission behind (package caches do), which are opened up where removal fails.
fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(path)?;
            fs::remove_dir_all(path)
        }
        removed => removed,
    }
}

fn open_up(dir: &Path) -> io::Result<()> {
    fs::set_permissions(dir, Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

/// Makes the names in a directory durable.
pub(super) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    /// Holds a lock as a shim does.
    fn locked(path: &Path) -> File {
        let file = File::options().create(true).append(true).open(path).expect("lock file");
        // SAFETY: plain integers, and a descriptor that is open.
        let done = unsafe {
            let mut lock: libc::flock = std::mem::zeroed();
            lock.l_type = libc::F_WRLCK as libc::c_short;
            libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock)
        };
        assert_eq!(done, 0);
        file
    }

    #[test]
    fn a_shim_between_two_looks_is_seen() {
        let root = tempfile::tempdir().expect("root");
        let layout = Layout::open(root.path()).expect("layout");
        let instance = InstanceId::new("i").expect("id");
        layout.create(&instance, true).expect("create");
        let mut held = None;
        layout
            .destroy_after(&instance, || held = Some(locked(&layout.runs(&instance).join("r.lock"))))
            .expect_err("a run became live meanwhile");
        assert!(layout.exists(&instance).expect("exists"), "moved back to where its shim expects it");
        drop(held);
        layout.destroy(&instance).expect("destroy");
    }

    #[test]
    fn trash_with_a_live_run_stays() {
        let root = tempfile::tempdir().expect("root");
        let layout = Layout::open(root.path()).expect("layout");
        let instance = InstanceId::new("i").expect("id");
        layout.create(&instance, true).expect("create");
        let held = locked(&layout.runs(&instance).join("r.lock"));
        layout.destroy(&instance).expect_err("live");
        assert!(layout.exists(&instance).expect("exists"));
        fs::rename(layout.instance(&instance), layout.trash(&instance)).expect("interrupted");
        layout.destroy(&instance).expect_err("live in the trash");
        drop(held);
        layout.destroy(&instance).expect("destroy");
        assert!(!layout.trash(&instance).exists());
    }
}
