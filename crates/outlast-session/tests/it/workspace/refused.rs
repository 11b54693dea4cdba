//! Restores that are refused: nothing is touched.

use std::os::unix::fs::symlink;
use std::path::Path;

use outlast_session::workspace::{
    RestoreError, RestoreMode, RestoreOptions, Restored, Snapshot, WorkspaceReadError,
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
fn destinations_that_are_none() {
    let world = World::new();
    write(world.root().join("file"), "x");
    write(world.path("plain"), "stays");
    symlink("root", world.path("link")).unwrap();
    run(async {
        let snapshot = world.snapshot().await;
        for name in ["plain", "link", "link/", "missing/copy", "/"] {
            for mode in [EXACT, OVERLAY] {
                let failed = restore(&world, &snapshot, &world.path(name), mode).await;
                assert!(matches!(failed, Err(RestoreError::Destination { .. })), "{name}: {failed:?}");
            }
        }
        assert_eq!(names(world.directory.path()), ["link", "plain", "root"]);
        // A link on the way to it is the caller's.
        symlink(".", world.path("here")).unwrap();
        restore(&world, &snapshot, &world.path("here/copy/"), EXACT).await.unwrap();
        assert_eq!(read_tree(&world.path("copy")), read_tree(&world.root()));
        std::fs::create_dir(world.path("copy/below")).unwrap();
        let restored = restore(&world, &snapshot, &world.path("copy/below/.."), EXACT).await.unwrap();
        assert_eq!(restored.put_aside, 2);
    });
}

#[test]
fn bounds() {
    let world = World::new();
    write(world.root().join("a"), [0; 100]);
    write(world.root().join("b"), [0; 100]);
    run(async {
        let snapshot = world.snapshot().await;
        for (max_entries, max_bytes, expected) in
            [(1, 1000, Some("entries")), (2, 199, Some("bytes")), (2, 200, None)]
        {
            let options = RestoreOptions { max_entries, max_bytes, ..RestoreOptions::new(NOW) };
            let found =
                match world.workspaces.restore(&snapshot.reference, &world.path("copy"), &options).await {
                    Ok(_) => None,
                    Err(RestoreError::TooLarge { what, .. }) => Some(what),
                    Err(error) => panic!("{error}"),
                };
            assert_eq!(found, expected);
            assert_eq!(world.path("copy").exists(), expected.is_none());
        }
    });
}

#[test]
fn what_is_missing_or_damaged_is_named_and_nothing_is_touched() {
    let world = World::new();
    write(world.root().join("a"), "a");
    write(world.root().join("big"), noise(1, 3 << 20));
    run(async {
        let snapshot = world.snapshot().await;
        let copy = world.path("copy");
        write(copy.join("mine"), "stays");
        for key in world.storage.keys().await {
            let whole = world.storage.read(&key).await;
            let other = zstd::bulk::compress(b"something else", 1).unwrap();
            let bomb = zstd::bulk::compress(&vec![0; 300 << 20], 1).unwrap();
            for (what, body) in [
                ("missing", None),
                ("cut", Some(&whole[..whole.len() / 2])),
                ("empty", Some(&[][..])),
                ("other", Some(&other[..])),
                ("bomb", Some(&bomb[..])),
                ("raw", Some(&b"not compressed"[..])),
            ] {
                match body {
                    Some(body) => world.storage.write(&key, body).await,
                    None => world.storage.remove(&key).await,
                }
                for mode in [EXACT, OVERLAY] {
                    let failed = restore(&world, &snapshot, &copy, mode).await.unwrap_err();
                    match (&failed, what) {
                        (RestoreError::Read(WorkspaceReadError::Missing { key: named }), "missing")
                        | (RestoreError::Read(WorkspaceReadError::Corrupt { key: named, .. }), _) => {
                            assert_eq!(
                                (named, what == "missing"),
                                (
                                    &key,
                                    matches!(failed, RestoreError::Read(WorkspaceReadError::Missing { .. }))
                                )
                            );
                        }
                        _ => panic!("{what}: {failed}"),
                    }
                }
                assert_eq!(names(&copy), ["mine"]);
                assert_eq!(names(world.directory.path()), ["copy", "root"], "nothing is left beside it");
            }
            // What a collection has put aside is as good.
            let aside = key.replace("workspaces/", "workspaces/quarantine/1700000000000/");
            world.storage.write(&aside, &whole).await;
            world.storage.take();
            restore(&world, &snapshot, &world.path("copy2"), EXACT).await.unwrap();
            let listings = world.storage.take().iter().filter(|(what, _)| *what == "list").count();
            assert_eq!(listings, 1);
            assert_eq!(read_tree(&world.path("copy2")), read_tree(&world.root()));
            std::fs::remove_dir_all(world.path("copy2")).unwrap();
            world.storage.remove(&aside).await;
            world.storage.write(&key, &whole).await;
        }
        restore(&world, &snapshot, &copy, EXACT).await.unwrap();
    });
}

#[test]
fn a_manifest_that_is_hostile_is_refused() {
    let world = World::new();
    run(async {
        for body in ["d 755 ../out\n", "l a /tmp\nf 644 0 a/b\n", "d 755 /tmp/x\n"] {
            let text = format!("outlast-workspace 1\n{body}");
            let digest = outlast_session::workspace::Digest::of(text.as_bytes());
            let reference = outlast_core::WorkspaceRef::from_digest(*digest.bytes());
            let packed = zstd::bulk::compress(text.as_bytes(), 1).unwrap();
            world.storage.write(&format!("workspaces/manifests/{}", digest.hex()), &packed).await;
            let failed =
                world.workspaces.restore(&reference, &world.path("copy"), &RestoreOptions::new(NOW)).await;
            let refused = matches!(failed, Err(RestoreError::Read(WorkspaceReadError::Manifest { .. })));
            assert!(refused, "{failed:?}");
        }
        assert_eq!(names(world.directory.path()), ["root"]);
    });
}

#[test]
fn one_at_a_time() {
    let world = World::new();
    write(world.root().join("a"), "a");
    run(async {
        let snapshot = world.snapshot().await;
        let other = world.path(".copy.outlast-restore-1700000000000");
        write(other.join("half"), "");
        let held = std::fs::File::open(&other).unwrap();
        rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
        let failed = restore(&world, &snapshot, &world.path("copy"), EXACT).await;
        assert!(matches!(failed, Err(RestoreError::Busy { .. })), "{failed:?}");
        assert_eq!(names(&other), ["half"]);
        drop(held);
        // What only looks like it is another's.
        write(world.path(".copy.outlast-restore-mine/x"), "");
        write(world.path(".copy.outlast-restore-1"), "a file");
        restore(&world, &snapshot, &world.path("copy"), EXACT).await.unwrap();
        let left = [".copy.outlast-restore-1", ".copy.outlast-restore-mine", "copy", "root"];
        assert_eq!(names(world.directory.path()), left);
    });
}
