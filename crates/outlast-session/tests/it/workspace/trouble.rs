//! Snapshots that are refused, watched, dropped, or meet storage that fails.

use std::sync::{Arc, Mutex};

use outlast_session::workspace::{Progress, RestoreOptions, SnapshotError, SnapshotOptions};

use super::support::*;

#[test]
fn bounds() {
    let world = World::new();
    write(world.root().join("a"), [0; 100]);
    write(world.root().join("b"), [0; 100]);
    run(async {
        for (max_entries, max_bytes, what) in
            [(1, 1000, Some("entries")), (2, 199, Some("bytes")), (2, 200, None)]
        {
            let options = SnapshotOptions { max_entries, max_bytes, ..SnapshotOptions::default() };
            let found = match world.workspaces.snapshot(&world.root(), &options).await {
                Ok(_) => None,
                Err(SnapshotError::TooLarge { what, .. }) => Some(what),
                Err(error) => panic!("{error}"),
            };
            assert_eq!(found, what);
        }
    });
}

#[test]
fn a_workspace_never_contains_its_own_snapshots() {
    let world = World::new();
    let store = world.root().join("store");
    run(async {
        let options =
            SnapshotOptions { cache: Some(world.root().join("deep/cache")), ..SnapshotOptions::default() };
        let failed = world.workspaces.snapshot(&world.root(), &options).await;
        assert!(matches!(failed, Err(SnapshotError::Overlap { .. })), "{failed:?}");
        let objects = outlast_session::objects::Objects::open(store.to_str().unwrap(), []).unwrap();
        let workspaces = outlast_session::workspace::Workspaces::new(objects);
        let failed = workspaces.snapshot(&world.root(), &SnapshotOptions::default()).await;
        assert!(matches!(failed, Err(SnapshotError::Overlap { .. })), "{failed:?}");
        let reference = world.snapshot().await.reference;
        for destination in [world.root(), store.clone(), store.join("deep")] {
            std::fs::create_dir_all(&destination).unwrap();
            let failed = workspaces.restore(&reference, &destination, &RestoreOptions::new(NOW)).await;
            let overlap = matches!(failed, Err(outlast_session::workspace::RestoreError::Overlap { .. }));
            assert!(overlap, "{failed:?}");
        }
    });
}

#[test]
fn in_a_directory_too() {
    let world = World::new();
    make_tree(&world.root());
    tick();
    let store = world.path("store");
    let objects = outlast_session::objects::Objects::open(store.to_str().unwrap(), []).unwrap();
    let workspaces = outlast_session::workspace::Workspaces::new(objects);
    run(async {
        let first = workspaces.snapshot(&world.root(), &world.options()).await.unwrap();
        let options = SnapshotOptions { base: Some(first.reference), ..world.options() };
        let second = workspaces.snapshot(&world.root(), &options).await.unwrap();
        assert_eq!((second.reference, second.uploaded_objects), (first.reference, 0));
        let copy = world.path("copy");
        workspaces.restore(&first.reference, &copy, &RestoreOptions::new(NOW)).await.unwrap();
        assert_eq!(read_tree(&copy), read_tree(&world.root()));
    });
}

#[test]
fn progress_is_told() {
    let world = World::new();
    make_tree(&world.root());
    let told = Arc::new(Mutex::new(Vec::<Progress>::new()));
    let to = told.clone();
    let options = SnapshotOptions {
        progress: Some(Arc::new(move |progress| to.lock().unwrap().push(progress))),
        ..SnapshotOptions::default()
    };
    run(async { world.workspaces.snapshot(&world.root(), &options).await.unwrap() });
    let told = told.lock().unwrap();
    let last = told.last().unwrap();
    assert_eq!((last.files, last.bytes), (last.of_files, last.of_bytes));
    assert!(told.is_sorted_by_key(|progress| progress.files));
    assert_eq!(last.files, 11);
}

/// Nothing is left that holds a thread, and nothing refers to what was stored.
#[test]
fn dropped_on_the_way() {
    let world = World::new();
    for n in 0..20 {
        write(world.root().join(format!("{n}")), noise(n, 2 << 20));
    }
    run(async {
        for polls in [1, 2, 5, 10, 30] {
            let mut left = polls;
            let (root, options) = (world.root(), world.options());
            let mut snapshot = Box::pin(world.workspaces.snapshot(&root, &options));
            let dropped = std::future::poll_fn(|context| {
                left -= 1;
                if left == 0 {
                    return std::task::Poll::Ready(true);
                }
                snapshot.as_mut().poll(context).map(|_| false)
            });
            dropped.await;
        }
    });
    run(async {
        assert!(world.storage.keys().await.iter().all(|key| key.contains("chunks")));
        let snapshot = world.snapshot().await;
        let copy = world.path("copy");
        world.workspaces.restore(&snapshot.reference, &copy, &RestoreOptions::new(NOW)).await.unwrap();
        assert_eq!(read_tree(&copy), read_tree(&world.root()));
    });
    if std::env::var_os("NEXTEST").is_none() {
        // Other tests' threads are in the same process.
        return;
    }
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let threads = std::fs::read_dir("/proc/self/task").unwrap().count();
        if threads <= 2 {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{threads} threads");
        tick();
    }
}

#[test]
fn storage_that_fails_at_any_step_leaves_no_snapshot_that_lies() {
    let world = World::new();
    for n in 0..4 {
        write(world.root().join(format!("{n}")), noise(n, 1000));
    }
    run(async {
        for k in 0.. {
            let world2 = World::new();
            world2.storage.fail_after(k);
            let made = world2.workspaces.snapshot(&world.root(), &SnapshotOptions::default()).await;
            world2.storage.heal();
            let Ok(snapshot) = made else {
                let keys = world2.storage.keys().await;
                assert!(keys.iter().all(|key| !key.contains("manifests")), "{k}: {keys:?}");
                assert!(k < 50);
                continue;
            };
            let copy = world.path("copy");
            world2.workspaces.restore(&snapshot.reference, &copy, &RestoreOptions::new(NOW)).await.unwrap();
            assert_eq!(k, 10, "four heads, four puts, the manifest's two");
            break;
        }
    });
}
