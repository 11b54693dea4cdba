//! What lies in a runs directory, and the deletion of one run's files. See [`crate::Provider::remove_run`].

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use outlast_core::decide::RunUse;
use outlast_core::journal::files;
use outlast_shim::latch;
use outlast_shim::lock::{self, Attempt};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::errors::Attempting;
use crate::{AgeGate, ProviderError, RunFile, RunListing, fail};

/// Every name in the runs directory. This machine's clock is the sandbox's.
pub(super) fn list(runs: &Path, now: u64) -> Result<RunListing, ProviderError> {
    let attempt = || format!("cannot list {}", runs.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(runs).attempting(attempt)? {
        let entry = entry.attempting(attempt)?;
        let mtime = match entry.metadata() {
            Ok(metadata) => milliseconds(&metadata),
            // What goes away while it is looked at is not there.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(_) => None,
        };
        found.push(RunFile { name: entry.file_name().as_bytes().to_vec(), mtime });
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(RunListing { files: found, now: Some(now), age_gate: AgeGate::Available, trouble: None })
}

fn milliseconds(metadata: &fs::Metadata) -> Option<u64> {
    let seconds = u64::try_from(metadata.mtime()).ok()?;
    let rest = u64::try_from(metadata.mtime_nsec()).ok()? / 1_000_000;
    Some(seconds.saturating_mul(1000).saturating_add(rest))
}

/// Who uses the run's files.
pub(super) fn in_use(runs: &Path, enc: &str) -> Result<RunUse, ProviderError> {
    let held = |suffix: &str| {
        let path = runs.join(format!("{enc}{suffix}"));
        lock::is_held(&path).attempting(|| format!("cannot ask who uses {}", path.display()))
    };
    Ok(if held(files::LOCK)? {
        RunUse::Shim
    } else if held(files::JOURNAL)? {
        RunUse::Reader
    } else {
        RunUse::Free
    })
}

/// Deletes the run's files, except for its latch.
pub(super) fn remove(runs: &Path, prompts: &Path, enc: &str) -> Result<RunUse, ProviderError> {
    let name = |suffix: &str| format!("{enc}{suffix}");
    // Through the open directory: a destroyer may move it away, and back because of the lock that is held here.
    let dir = open_dir(runs).attempting(|| format!("cannot open {}", runs.display()))?;
    let flags = OFlags::WRONLY | OFlags::CREATE;
    let run_lock =
        open(&dir, &name(files::LOCK), flags).attempting(|| "cannot open the run's lock".to_owned())?;
    if lock::try_take(&run_lock).attempting(|| "cannot lock the run".to_owned())? == Attempt::Held {
        return Ok(RunUse::Shim);
    }
    let _journal = match open(&dir, &name(files::JOURNAL), OFlags::RDWR | OFlags::NONBLOCK) {
        Ok(journal) => {
            let taken = lock::try_take(&journal).attempting(|| "cannot lock the journal".to_owned())?;
            if taken == Attempt::Held {
                return Ok(RunUse::Reader);
            }
            Some(journal)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).attempting(|| "cannot open the journal".to_owned()),
    };
    // Before anything is deleted. From now on no shim starts an agent, whenever it was sent.
    latch::take_cancelled_in(&dir, enc).attempting(|| "cannot take the launch latch".to_owned())?;
    fail::point("prune.latched");
    unlink(&dir, &name(files::JOURNAL))?;
    fail::point("prune.journal");
    unlink(&dir, &name(files::EXIT))?;
    unlink(&dir, &name(files::STDERR))?;
    fail::point("prune.output");
    // Prompts lie where agents can read them; the suffixes belong to the run wherever they are.
    let prompts = match open_dir(prompts) {
        Ok(prompts) => Some(prompts),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).attempting(|| format!("cannot open {}", prompts.display())),
    };
    for dir in [Some(&dir), prompts.as_ref()].into_iter().flatten() {
        unlink(dir, &name(files::PROMPT))?;
        unlink(dir, &name(files::FALLBACK_PROMPT))?;
    }
    fail::point("prune.prompts");
    unlink(&dir, &name(files::LOCK))?;
    Ok(RunUse::Free)
}

fn open_dir(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Links are not followed: whoever could plant one must not choose what is locked.
fn open(dir: impl AsFd, name: &str, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::openat(dir, name, flags, Mode::RUSR | Mode::WUSR)?)
}

fn unlink(dir: impl AsFd, name: &str) -> Result<(), ProviderError> {
    match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error).attempting(|| format!("cannot delete {name}")),
    }
}
