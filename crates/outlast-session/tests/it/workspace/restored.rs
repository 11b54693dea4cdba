//! Restores over what is there already: nothing is lost, nothing outside is touched.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use outlast_session::workspace::{
    RestoreError, RestoreMode, RestoreOptions, Restored, Snapshot, SnapshotOptions,
};

use super::support::*;

const EXACT: RestoreMode = RestoreMode::Exact;
const OVERLAY: RestoreMode = RestoreMode::Overlay;

async fn restore(
    world: &World,
    snapshot: &Snapshot,
    to: &Path,
    mode: RestoreMode,
) -> Result<Restored, RestoreError> {
    let options = RestoreOptions { mode, ..RestoreOptions::new(NOW) };
    world.workspaces.restore(&snapshot.reference, to, &options).await
}

#[test]
fn what_is_there_already_is_not_touched() {
    let world = World::new();
    make_tree(&world.root());
    run(async {
        let snapshot = world.snapshot().await;
        world.storage.take();
        for mode in [EXACT, OVERLAY] {
            let restored = restore(&world, &snapshot, &world.root(), mode).await.unwrap();
            assert!(restored.unchanged);
            assert_eq!((restored.written, restored.put_aside), (0, 0));
            assert_eq!(world.storage.take().len(), 1, "only the manifest is read");
        }
        assert_eq!(names(world.directory.path()), ["root"]);
    });
}

#[test]
fn what_differs_is_put_aside() {
    // Each makes another tree of the same one.
    type Drift = fn(&Path);
    let drifts: [(&str, Drift); 10] = [
        ("content", |root| write(root.join("hello.txt"), "hallo")),
        ("size", |root| write(root.join("hello.txt"), "")),
        ("mode", |root| set_mode(root.join("hello.txt"), 0o600)),
        ("mode of a directory", |root| set_mode(root.join("dir"), 0o700)),
        ("more", |root| write(root.join("dir/more"), "")),
        ("a secret", |root| write(root.join(".env"), "SECRET=1")),
        ("less", |root| std::fs::remove_file(root.join("hello.txt")).unwrap()),
        ("a link's target", |root| {
            std::fs::remove_file(root.join("link")).unwrap();
            symlink("empty", root.join("link")).unwrap();
        }),
        ("a pipe", |root| rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe"), 0o600.into()).unwrap()),
        ("a directory for a file", |root| {
            std::fs::remove_file(root.join("empty")).unwrap();
            write(root.join("empty/not"), "");
        }),
    ];
    for (name, drift) in drifts {
        let world = World::new();
        make_tree(&world.root());
        run(async {
            let snapshot = world.snapshot().await;
            let before = read_tree_without_pipes(&world.root());
            let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).unwrap());
            let itself = inode(&world.root());
            drift(&world.root());
            let drifted = read_tree_without_pipes(&world.root());
            let restored = restore(&world, &snapshot, &world.root(), EXACT).await.unwrap();
            assert!(!restored.unchanged, "{name}");
            assert_eq!(read_tree_without_pipes(&world.root()), before, "{name}");
            assert_eq!(inode(&world.root()), itself, "{name}: somebody may work in it");
            let aside = restored.aside.unwrap();
            assert_eq!(aside.file_name().unwrap().to_str().unwrap(), format!("root.outlast-aside-{NOW}"));
            assert_eq!(read_tree_without_pipes(&aside), drifted, "{name}: nothing is lost");
            assert_eq!(names(world.directory.path()).len(), 2, "{name}");
            // Once more at the same time, with the same name.
            drift(&world.root());
            let again = restore(&world, &snapshot, &world.root(), EXACT).await.unwrap();
            assert_eq!(again.aside.unwrap(), world.path(&format!("root.outlast-aside-{NOW}-1")));
        });
    }
}

fn read_tree_without_pipes(
    root: &Path,
) -> std::collections::BTreeMap<std::path::PathBuf, (char, u32, Vec<u8>)> {
    let pipe = root.join("pipe");
    let hidden = root.with_extension("hidden");
    let there = std::fs::symlink_metadata(&pipe).is_ok();
    if there {
        std::fs::rename(&pipe, &hidden).unwrap();
    }
    let tree = read_tree(root);
    if there {
        std::fs::rename(&hidden, &pipe).unwrap();
    }
    tree
}

#[test]
fn an_overlay_keeps_what_the_snapshot_does_not_hold() {
    let world = World::new();
    let root = world.root();
    for name in ["same", "other", "dir/same", "dir/other", "file-now-directory", "gone"] {
        write(root.join(name), "snapshot");
    }
    write(root.join("directory-now-file/x"), "snapshot");
    write(root.join("mode"), "snapshot");
    symlink("same", root.join("link")).unwrap();
    run(async {
        let snapshot = world.snapshot().await;
        let before = read_tree(&root);
        write(root.join("other"), "mine");
        write(root.join("dir/other"), "mine too");
        write(root.join("dir/mine"), "stays");
        write(root.join("mine/deep"), "stays");
        std::fs::remove_file(root.join("gone")).unwrap();
        std::fs::remove_file(root.join("file-now-directory")).unwrap();
        write(root.join("file-now-directory/y"), "mine");
        std::fs::remove_dir_all(root.join("directory-now-file")).unwrap();
        write(root.join("directory-now-file"), "mine");
        std::fs::remove_file(root.join("link")).unwrap();
        symlink("other", root.join("link")).unwrap();
        set_mode(root.join("mode"), 0o600);
        let restored = restore(&world, &snapshot, &root, OVERLAY).await.unwrap();
        assert_eq!((restored.written, restored.put_aside), (6, 5));
        let mut expected = before.clone();
        for (name, content) in [("dir/mine", "stays"), ("mine/deep", "stays")] {
            expected.insert(name.into(), ('f', 0o644, content.into()));
        }
        expected.insert("mine".into(), ('d', 0o755, Vec::new()));
        assert_eq!(read_tree(&root), expected);
        let aside = read_tree(&restored.aside.unwrap());
        let files: Vec<_> = aside.iter().filter(|(_, entry)| entry.0 != 'd').collect();
        let texts: Vec<_> =
            files.iter().map(|(path, entry)| (path.to_str().unwrap(), &entry.2[..])).collect();
        assert_eq!(
            texts,
            [
                ("dir/other", &b"mine too"[..]),
                ("directory-now-file", b"mine"),
                ("file-now-directory/y", b"mine"),
                ("link", b"other"),
                ("other", b"mine"),
            ]
        );
        assert!(restore(&world, &snapshot, &root, OVERLAY).await.unwrap().unchanged);
    });
}

#[test]
fn an_overlay_follows_no_link() {
    let world = World::new();
    write(world.root().join("dir/sub/file"), "snapshot");
    write(world.root().join("plain"), "snapshot");
    run(async {
        let snapshot = world.snapshot().await;
        let copy = world.path("copy");
        write(world.path("outside/sub/file"), "outside");
        write(world.path("outside/plain"), "outside");
        std::fs::create_dir(&copy).unwrap();
        symlink(world.path("outside"), copy.join("dir")).unwrap();
        symlink(world.path("outside/plain"), copy.join("plain")).unwrap();
        let outside = read_tree(&world.path("outside"));
        let restored = restore(&world, &snapshot, &copy, OVERLAY).await.unwrap();
        assert_eq!(restored.put_aside, 2);
        assert_eq!(read_tree(&copy), read_tree(&world.root()));
        assert_eq!(read_tree(&world.path("outside")), outside);
        let aside = restored.aside.unwrap();
        assert_eq!(std::fs::read_link(aside.join("dir")).unwrap(), world.path("outside"));
    });
}

#[test]
fn without_roots_rights_a_read_only_destination_is_no_hindrance() {
    let world = World::new();
    run_as_nobody(async || {
        let (root, copy) = (world.path("mine"), world.path("copy"));
        std::fs::create_dir(&root).unwrap();
        make_tree(&root);
        let snapshot = world.workspaces.snapshot(&root, &SnapshotOptions::default()).await.unwrap();
        restore(&world, &snapshot, &copy, EXACT).await.unwrap();
        set_mode(copy.join("sealed/inner"), 0o755);
        std::fs::write(copy.join("sealed/inner/file"), "drift").unwrap();
        set_mode(copy.join("sealed/inner"), 0o555);
        std::fs::remove_file(copy.join("hello.txt")).unwrap();
        set_mode(&copy, 0o555);
        let restored = restore(&world, &snapshot, &copy, OVERLAY).await.unwrap();
        assert_eq!(restored.put_aside, 1);
        assert_eq!(read_tree(&copy), read_tree(&root));
        let mode = std::fs::metadata(&copy).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o555, "its own mode stays");
        // The directory above cannot be written to.
        let closed = world.path("closed");
        std::fs::create_dir(&closed).unwrap();
        std::fs::create_dir(closed.join("copy")).unwrap();
        set_mode(&closed, 0o555);
        for (destination, mode) in
            [(closed.join("copy"), EXACT), (closed.join("copy"), OVERLAY), (closed.join("new"), EXACT)]
        {
            let failed = restore(&world, &snapshot, &destination, mode).await;
            assert!(matches!(failed, Err(RestoreError::Beside { .. })), "{failed:?}");
        }
        set_mode(&closed, 0o755);
        assert_eq!(names(&closed), ["copy"]);
    });
}

/// The destination is as it was, or restored; and what is left beside it goes with the next restore.
#[test]
fn dropped_on_the_way() {
    let world = World::new();
    for n in 0..20 {
        write(world.root().join(format!("{n}")), noise(n, 100_000));
    }
    let copy = world.path("copy");
    write(copy.join("mine"), "stays");
    run(async {
        let snapshot = world.snapshot().await;
        let before = read_tree(&copy);
        for polls in 1..30 {
            let mut left = polls;
            let mut restoring = Box::pin(restore(&world, &snapshot, &copy, EXACT));
            let ended = std::future::poll_fn(|context| {
                left -= 1;
                if left == 0 {
                    return std::task::Poll::Ready(false);
                }
                restoring.as_mut().poll(context).map(|_| true)
            });
            let ended = ended.await;
            drop(restoring);
            // What had begun on a thread comes to its end.
            let restored = loop {
                match restore(&world, &snapshot, &copy, EXACT).await {
                    Err(RestoreError::Busy { .. }) => tick(),
                    answer => break answer.unwrap(),
                }
            };
            assert_eq!(read_tree(&copy), read_tree(&world.root()), "{polls}");
            let aside = world.path(&format!("copy.outlast-aside-{NOW}"));
            assert_eq!(read_tree(&aside), before, "{polls} {restored:?}");
            if ended {
                return;
            }
            std::fs::remove_dir_all(&copy).unwrap();
            std::fs::rename(&aside, &copy).unwrap();
            set_mode(&copy, 0o755);
        }
    });
}
