//! Trees on disk, and storage that counts, fails and lies.

use std::collections::BTreeMap;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_session::objects::Objects;
use outlast_session::workspace::{Digest, Snapshot, SnapshotOptions, Workspaces};
use tempfile::TempDir;

use super::troubled::Troubled;

/// The time that tests give, in milliseconds since 1970.
pub const NOW: u64 = 1_800_000_000_000;

pub fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(test)
}

/// Runs the test without root's rights, which ignore permissions.
pub fn run_as_nobody<T: Send>(test: impl AsyncFnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let on_thread = scope.spawn(|| {
            if rustix::process::geteuid().is_root() {
                let nobody = rustix::process::Uid::from_raw(65534);
                // SAFETY: of this thread only, and of those that it starts; it ends with the test.
                rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            }
            run(test())
        });
        on_thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// So long that the file system's clock has gone on.
pub fn tick() {
    std::thread::sleep(std::time::Duration::from_millis(30));
}

/// A directory with room beside it, and storage.
pub struct World {
    pub directory: TempDir,
    pub storage: Arc<Troubled>,
    pub workspaces: Workspaces,
}

impl World {
    pub fn new() -> World {
        rustix::process::umask(0o022.into());
        let directory = tempfile::tempdir().unwrap();
        // So that also nobody may work in it.
        std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o777)).unwrap();
        let storage = Arc::new(Troubled::default());
        let workspaces = Workspaces::new(Objects::of_store("troubled", storage.clone()));
        std::fs::create_dir(directory.path().join("root")).unwrap();
        World { directory, storage, workspaces }
    }

    pub fn root(&self) -> PathBuf {
        self.path("root")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn options(&self) -> SnapshotOptions {
        SnapshotOptions { cache: Some(self.path("cache")), ..SnapshotOptions::default() }
    }

    /// Without cache and base.
    pub async fn snapshot(&self) -> Snapshot {
        self.workspaces.snapshot(&self.root(), &SnapshotOptions::default()).await.unwrap()
    }
}

pub fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    let path = path.as_ref();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

pub fn set_mode(path: impl AsRef<Path>, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// Bytes that look random, the same for each seed.
pub fn noise(seed: u8, count: usize) -> Vec<u8> {
    let block = |n: usize| *Digest::of(&[&[seed], &n.to_le_bytes()[..]].concat()).bytes();
    (0..count.div_ceil(32)).flat_map(block).take(count).collect()
}

/// A tree of everything that there can be, nearly.
pub fn make_tree(root: &Path) {
    write(root.join("hello.txt"), "hello");
    write(root.join("empty"), "");
    write(root.join("dir/sub/deep.bin"), noise(1, 10_000));
    write(root.join("dir-sibling"), "sorts between dir and what is in it");
    write(root.join("run.sh"), "#!/bin/sh\n");
    set_mode(root.join("run.sh"), 0o755);
    write(root.join("private"), "p");
    set_mode(root.join("private"), 0o600);
    write(root.join("locked"), "may only be read");
    set_mode(root.join("locked"), 0o444);
    write(root.join("big"), noise(2, 5 << 20));
    std::fs::create_dir(root.join("hollow")).unwrap();
    set_mode(root.join("hollow"), 0o500);
    write(root.join(std::ffi::OsString::from_vec(b"bytes \xff\xfe\n%41".to_vec())), b"\xff\x00\xfe");
    write(root.join("héllo wörld"), "é");
    std::os::unix::fs::symlink("hello.txt", root.join("link")).unwrap();
    std::os::unix::fs::symlink("/nowhere/at all", root.join("dangling")).unwrap();
    std::os::unix::fs::symlink("..", root.join("dir/up")).unwrap();
    write(root.join("sealed/inner/file"), "in directories that are read-only");
    set_mode(root.join("sealed/inner"), 0o555);
    set_mode(root.join("sealed"), 0o555);
}

/// Everything under a directory: kind, mode and content by path.
pub fn read_tree(root: &Path) -> BTreeMap<PathBuf, (char, u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let meta = std::fs::symlink_metadata(&path).unwrap();
            let mode = meta.permissions().mode() & 0o7777;
            let value = if meta.is_symlink() {
                ('l', 0, std::fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec())
            } else if meta.is_dir() {
                waiting.push(path.clone());
                ('d', mode, Vec::new())
            } else {
                ('f', mode, std::fs::read(&path).unwrap())
            };
            found.insert(path.strip_prefix(root).unwrap().to_owned(), value);
        }
    }
    found
}

/// The names in a directory.
pub fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
