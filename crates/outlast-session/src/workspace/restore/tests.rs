//! Restores that die at any step, and manifests that got past the check.

use std::os::fd::AsFd;
use std::path::Path;

use super::stage::Stage;
use super::steps::Steps;
use super::{RestoreError, RestoreMode, RestoreOptions};
use crate::objects::Objects;
use crate::workspace::files::open_root;
use crate::workspace::{Digest, Entry, EntryKind, SnapshotOptions, Workspaces};

fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(test)
}

fn write(path: &Path, content: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// The content of all files under a directory, with repetition.
fn contents(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                waiting.push(entry.path());
            } else {
                found.push(std::fs::read_to_string(entry.path()).unwrap());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn it_dies_at_any_step_and_the_next_one_finishes() {
    run(async {
        for mode in [RestoreMode::Exact, RestoreMode::Overlay] {
            let mut survived = false;
            for step in 0..100 {
                let directory = tempfile::tempdir().unwrap();
                let (root, copy) = (directory.path().join("root"), directory.path().join("copy"));
                for name in ["a", "b/c", "b/d", "e/f/g"] {
                    write(&root.join(name), name);
                }
                let workspaces = Workspaces::new(Objects::in_memory());
                let reference =
                    workspaces.snapshot(&root, &SnapshotOptions::default()).await.unwrap().reference;
                let mine = ["1", "2", "3", "4"];
                for (name, content) in ["a", "b/d", "e", "z/y"].iter().zip(mine) {
                    write(&copy.join(name), content);
                }
                let options = RestoreOptions { mode, ..RestoreOptions::new(1) };
                let died = workspaces
                    .restore_in_steps(&reference, &copy, &options, Steps::dying_after(step))
                    .await
                    .is_err();
                let found = contents(directory.path());
                assert!(mine.iter().all(|mine| found.iter().any(|found| found == mine)), "{step}: {found:?}");
                let restored = workspaces.restore(&reference, &copy, &options).await.unwrap();
                let found = contents(directory.path());
                assert!(mine.iter().all(|mine| found.iter().any(|found| found == mine)), "{step}: {found:?}");
                let mut expected = vec!["a", "b/c", "b/d", "e/f/g"];
                if mode == RestoreMode::Overlay {
                    expected.insert(0, "4");
                }
                assert_eq!(contents(&copy), expected, "{step}");
                let beside = std::fs::read_dir(directory.path()).unwrap();
                let staging = beside.filter(|entry| {
                    entry.as_ref().unwrap().file_name().to_string_lossy().contains("outlast-restore")
                });
                assert_eq!(staging.count(), 0, "{step}");
                if !died {
                    assert!(restored.unchanged && step > 8, "{step}");
                    survived = true;
                    break;
                }
            }
            assert!(survived);
        }
    });
}

#[test]
fn no_path_leads_out_even_past_the_check() {
    let directory = tempfile::tempdir().unwrap();
    let (root, outside) = (directory.path().join("root"), directory.path().join("outside"));
    std::fs::create_dir(&root).unwrap();
    std::fs::create_dir(&outside).unwrap();
    let opened = open_root(&root).unwrap();
    let absolute = outside.join("x").to_str().unwrap().to_owned();
    let entry = |path: &str, kind: EntryKind| Entry { path: path.into(), kind };
    let folder = || EntryKind::Directory { mode: 0o755 };
    let file = || EntryKind::File { mode: 0o644, size: 1, chunks: vec![Digest::of(b"x")] };
    let link = |target: &Path| EntryKind::Symlink { target: target.to_str().unwrap().into() };
    let mut stage = Stage::new(opened.as_fd(), 100, 100);
    let mut make = |entry: Entry| stage.entry(&entry, &mut || Some(b"x".to_vec()));
    make(entry("dir", folder())).unwrap();
    make(entry("out", link(&outside))).unwrap();
    make(entry("out2", link(&outside.join("y")))).unwrap();
    make(entry("file", file())).unwrap();
    for path in [
        "../x",
        "..",
        ".",
        "",
        "/x",
        &absolute,
        "dir/../../x",
        "dir//x",
        "out/x",
        "out2",
        "out",
        "file",
        "dir",
        "file/x",
        "missing/x",
        "x\0y",
    ] {
        for kind in [folder(), file(), link(&outside)] {
            let refused = make(entry(path, kind.clone()));
            assert!(matches!(refused, Err(RestoreError::Write { .. })), "{path:?} {kind:?}");
        }
    }
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    assert_eq!(std::fs::read_dir(&root).unwrap().count(), 4);
}

#[test]
fn bounds_hold_for_what_is_really_written() {
    let root = tempfile::tempdir().unwrap();
    let opened = open_root(root.path()).unwrap();
    let file = |path: &str, size, count| Entry {
        path: path.into(),
        kind: EntryKind::File { mode: 0o644, size, chunks: vec![Digest::of(b"x"); count] },
    };
    let mut stage = Stage::new(opened.as_fd(), 6, 10);
    let mut make = |entry: &Entry| stage.entry(entry, &mut || Some(b"12345".to_vec()));
    assert!(matches!(make(&file("a", 4, 1)), Err(RestoreError::Write { .. })), "a chunk that is too large");
    assert!(matches!(make(&file("b", 6, 1)), Err(RestoreError::Write { .. })), "one that is too small");
    assert!(make(&file("c", 10, 2)).is_ok());
    assert!(matches!(make(&file("d", 5, 1)), Err(RestoreError::TooLarge { what: "bytes", .. })));
    assert!(make(&file("e", 0, 0)).is_ok());
    assert!(make(&file("f", 0, 0)).is_ok());
    assert!(matches!(make(&file("g", 0, 0)), Err(RestoreError::TooLarge { what: "entries", .. })));
    let mut stage = Stage::new(opened.as_fd(), 6, 10);
    let refused = stage.entry(&file("h", 1, 1), &mut || None);
    assert!(matches!(refused, Err(RestoreError::Write { .. })), "nothing more can be read");
}
