//! A small disk.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::skip::skipped;

/// A tmpfs, unmounted when dropped: before the directory that it is mounted on is removed.
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts one over the directory. None, visibly, where that may not be done.
    pub fn mount(path: &Path, size: &str) -> Option<SmallDisk> {
        let options = format!("size={size},mode=0700");
        let output = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "none"]).arg(path).output();
        match output {
            Ok(output) if output.status.success() => Some(SmallDisk { path: path.to_owned() }),
            Ok(output) => {
                let why = String::from_utf8_lossy(&output.stderr);
                skipped(&format!("no tmpfs can be mounted: {}", why.trim()));
                None
            }
            Err(error) => {
                skipped(&format!("no tmpfs can be mounted: {error}"));
                None
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, since a process that is just ending may still have something open there.
        let _ = Command::new("umount").arg("--lazy").arg(&self.path).status();
    }
}
