//! An ordinary user, where the tests run as root.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use tempfile::TempDir;

use super::bench::Bench;
use super::skip::skipped;

/// Nobody.
const UID: u32 = 65534;

/// The program where an ordinary user can reach it, wherever it was built.
pub struct Ordinary {
    dir: TempDir,
}

impl Ordinary {
    /// None, visibly, where the tests do not run as root: then they are an ordinary user's already.
    pub fn new() -> Option<Ordinary> {
        if !rustix::process::geteuid().is_root() {
            skipped("as another user: the tests do not run as root");
            return None;
        }
        let dir = TempDir::with_prefix("outlast-it-program-").expect("temporary directory");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
        // Another process writes the copy: a process that a parallel test forks here meanwhile would hold the file open
        // for writing, and it could not be executed.
        let copied = std::process::Command::new("cp")
            .arg(env!("CARGO_BIN_EXE_outlast"))
            .arg(dir.path().join("outlast"))
            .status()
            .expect("cp");
        assert!(copied.success(), "{copied}");
        Some(Ordinary { dir })
    }

    /// A bench that belongs to that user and runs the program as that user.
    pub fn bench(&self, config: &str) -> Bench {
        let mut bench = Bench::with_config(config);
        give(bench.path());
        let program = self.dir.path().join("outlast");
        let prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];
        bench.program = prefix.into_iter().map(Into::into).chain([program.into_os_string()]).collect();
        bench
    }
}

/// Gives a directory and everything in it to that user.
fn give(path: &Path) {
    chown(path, Some(UID), Some(UID)).expect("chown");
    if path.is_dir() {
        fs::read_dir(path).expect("directory").for_each(|entry| give(&entry.expect("entry").path()));
    }
}
