//! What goes in comes out, and equal trees have equal names.

use std::os::unix::fs::PermissionsExt;

use outlast_session::workspace::{RestoreMode, RestoreOptions, SkipReason, SnapshotOptions, escape};

use super::support::*;

#[test]
fn everything_survives() {
    let world = World::new();
    make_tree(&world.root());
    run(async {
        let snapshot = world.snapshot().await;
        assert_eq!((snapshot.files, snapshot.directories, snapshot.symlinks), (11, 5, 3));
        assert_eq!((snapshot.changed, snapshot.excluded, snapshot.skipped.len()), (false, 0, 0));
        assert_eq!(snapshot.hashed_files, 10, "empty ones need no reading");
        for mode in [RestoreMode::Exact, RestoreMode::Overlay] {
            let copy = world.path(&format!("{mode:?}"));
            let options = RestoreOptions { mode, ..RestoreOptions::new(NOW) };
            let restored = world.workspaces.restore(&snapshot.reference, &copy, &options).await.unwrap();
            assert_eq!((restored.unchanged, restored.aside, restored.written), (false, None, 14));
            assert_eq!(restored.bytes, snapshot.bytes);
            assert_eq!(read_tree(&copy), read_tree(&world.root()));
            let again = world.workspaces.snapshot(&copy, &SnapshotOptions::default()).await.unwrap();
            assert_eq!(again.reference, snapshot.reference);
            assert_eq!(again.uploaded_objects, 0);
        }
        assert_eq!(
            names(world.directory.path()),
            ["Exact", "Overlay", "root"],
            "nothing is left beside them"
        );
    });
}

#[test]
fn everything_survives_without_roots_rights() {
    let world = World::new();
    run_as_nobody(async || {
        let (root, copy) = (world.path("mine"), world.path("copy"));
        std::fs::create_dir(&root).unwrap();
        make_tree(&root);
        let snapshot = world.workspaces.snapshot(&root, &SnapshotOptions::default()).await.unwrap();
        for _ in 0..2 {
            world.workspaces.restore(&snapshot.reference, &copy, &RestoreOptions::new(NOW)).await.unwrap();
            assert_eq!(read_tree(&copy), read_tree(&root));
        }
        // Also read-only directories are put aside, and keep their modes.
        write(copy.join("more"), "");
        let drifted = read_tree(&copy);
        let restored =
            world.workspaces.restore(&snapshot.reference, &copy, &RestoreOptions::new(NOW)).await.unwrap();
        assert_eq!(read_tree(&copy), read_tree(&root));
        assert_eq!(read_tree(&restored.aside.unwrap()), drifted);
    });
}

#[test]
fn names_follow_from_content_alone() {
    let world = World::new();
    let (one, two) = (world.path("one"), world.path("two"));
    write(one.join("a"), "a");
    write(one.join("b/c"), "c");
    write(two.join("b/c"), "c");
    write(two.join("a"), "a");
    let old = std::fs::File::options().write(true).open(two.join("a")).unwrap();
    old.set_modified(std::time::UNIX_EPOCH).unwrap();
    set_mode(&two, 0o700);
    run(async {
        let name = async |root: &std::path::Path| {
            world.workspaces.snapshot(root, &SnapshotOptions::default()).await.unwrap().reference
        };
        let expected = name(&one).await;
        assert_eq!(
            expected.to_string(),
            "v1:sha256:53c92dc95fb4f16c99f178f810cdff2555255a04133c2b5773d076216c987676",
            "for ever"
        );
        assert_eq!(name(&two).await, expected);
        set_mode(two.join("a"), 0o600);
        assert_ne!(name(&two).await, expected, "the mode counts");
        set_mode(two.join("a"), 0o6644);
        assert_eq!(name(&two).await, expected, "more than permissions does not");
        std::fs::create_dir(two.join("d")).unwrap();
        assert_ne!(name(&two).await, expected, "also an empty directory counts");
    });
}

#[test]
fn an_empty_tree() {
    let world = World::new();
    run(async {
        let snapshot = world.snapshot().await;
        assert_eq!((snapshot.files, snapshot.bytes), (0, 0));
        let copy = world.path("copy");
        let options = RestoreOptions::new(NOW);
        let restored = world.workspaces.restore(&snapshot.reference, &copy, &options).await.unwrap();
        assert!(!restored.unchanged && copy.is_dir());
        assert!(world.workspaces.restore(&snapshot.reference, &copy, &options).await.unwrap().unchanged);
    });
}

#[test]
fn a_snapshot_is_shown() {
    let world = World::new();
    make_tree(&world.root());
    run(async {
        let snapshot = world.snapshot().await;
        let manifest = world.workspaces.manifest(&snapshot.reference).await.unwrap();
        let summary = manifest.summary();
        assert_eq!(
            (summary.reference, summary.files, summary.bytes),
            (snapshot.reference, snapshot.files, snapshot.bytes)
        );
        let entries = serde_json::to_value(manifest.entries()).unwrap();
        assert!(entries.as_array().unwrap().contains(&serde_json::json!({
            "path": "run.sh", "kind": "file", "mode": "755", "size": 10,
        })));
        assert!(entries.as_array().unwrap().contains(&serde_json::json!({
            "path": "dangling", "kind": "symlink", "target": "/nowhere/at%20all",
        })));
        let json = serde_json::to_value(&snapshot).unwrap();
        assert_eq!(json["uploadedObjects"], snapshot.uploaded_objects);
    });
}

#[test]
fn what_is_no_file_is_reported() {
    let world = World::new();
    let root = world.root();
    write(root.join("file"), "x");
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("fifo"), 0o600.into()).unwrap();
    // To outside of it: nothing of that may get in.
    write(world.path("outside/secret"), "secret");
    std::os::unix::fs::symlink(world.path("outside"), root.join("out")).unwrap();
    run(async {
        let snapshot = world.snapshot().await;
        let skipped: Vec<_> = snapshot.skipped.iter().map(|s| (s.path.as_str(), &s.reason)).collect();
        assert_eq!(skipped, [("fifo", &SkipReason::Fifo), ("socket", &SkipReason::Socket)]);
        assert_eq!((snapshot.files, snapshot.symlinks, snapshot.changed), (1, 1, false));
        assert_eq!(
            serde_json::to_value(&snapshot.skipped[0]).unwrap(),
            serde_json::json!({"path": "fifo", "reason": "fifo"})
        );
    });
}

#[test]
fn what_cannot_be_read_is_reported() {
    let world = World::new();
    let root = world.root();
    write(root.join("file"), "x");
    for name in ["closed", "dark/inside/file"] {
        write(root.join(name), "x");
    }
    set_mode(root.join("closed"), 0);
    set_mode(root.join("dark"), 0);
    run_as_nobody(async || {
        let snapshot = world.snapshot().await;
        let skipped: Vec<_> = snapshot.skipped.iter().map(|s| s.path.as_str()).collect();
        assert_eq!(skipped, ["closed", "dark"]);
        for skipped in &snapshot.skipped {
            assert!(matches!(skipped.reason, SkipReason::Unreadable { .. }), "{skipped:?}");
        }
        assert_eq!((snapshot.files, snapshot.directories), (1, 0));
    });
    set_mode(root.join("dark"), 0o700);
}

#[test]
fn a_root_that_is_none() {
    let world = World::new();
    write(world.path("file"), "");
    run(async {
        for name in ["file", "missing"] {
            let failed = world.workspaces.snapshot(&world.path(name), &SnapshotOptions::default()).await;
            assert!(matches!(failed, Err(outlast_session::workspace::SnapshotError::Root { .. })), "{name}");
        }
    });
}

#[test]
fn deep_and_long_paths() {
    let world = World::new();
    let mut path = world.root();
    for _ in 0..300 {
        path.push("d");
    }
    write(path.join("file"), "deep");
    run(async {
        let snapshot = world.snapshot().await;
        let copy = world.path("copy");
        world.workspaces.restore(&snapshot.reference, &copy, &RestoreOptions::new(NOW)).await.unwrap();
        assert_eq!(read_tree(&copy), read_tree(&world.root()));
    });
    // Deeper than any system call takes a path.
    let name = "n".repeat(250);
    let depth = 20;
    let mut at =
        rustix::fs::openat(rustix::fs::CWD, world.root(), rustix::fs::OFlags::PATH, 0.into()).unwrap();
    for _ in 0..depth {
        rustix::fs::mkdirat(&at, &name[..], 0o755.into()).unwrap();
        at = rustix::fs::openat(&at, &name[..], rustix::fs::OFlags::PATH, 0.into()).unwrap();
    }
    run(async {
        let snapshot = world.snapshot().await;
        assert_eq!(snapshot.skipped.len(), 1);
        assert_eq!(snapshot.skipped[0].reason, SkipReason::PathTooLong);
        let copy = world.path("copy2");
        world.workspaces.restore(&snapshot.reference, &copy, &RestoreOptions::new(NOW)).await.unwrap();
        let again = world.workspaces.snapshot(&copy, &SnapshotOptions::default()).await.unwrap();
        assert_eq!(again.reference, snapshot.reference);
    });
}

#[test]
fn a_restored_mode_is_no_more_than_permissions() {
    let world = World::new();
    write(world.root().join("tool"), "x");
    set_mode(world.root().join("tool"), 0o6755);
    run(async {
        let snapshot = world.snapshot().await;
        let copy = world.path("copy");
        world.workspaces.restore(&snapshot.reference, &copy, &RestoreOptions::new(NOW)).await.unwrap();
        let mode = std::fs::metadata(copy.join("tool")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o755);
        assert_eq!(escape(b"tool"), "tool");
    });
}
