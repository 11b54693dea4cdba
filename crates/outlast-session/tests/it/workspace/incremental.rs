//! What has not changed costs nothing.

use std::os::unix::fs::MetadataExt;

use outlast_session::workspace::{RestoreOptions, SkipReason, Snapshot, SnapshotOptions};

use super::support::*;

async fn again(world: &World, before: &Snapshot) -> Snapshot {
    let options = SnapshotOptions { base: Some(before.reference), ..world.options() };
    world.workspaces.snapshot(&world.root(), &options).await.unwrap()
}

#[test]
fn unchanged_trees_cost_nothing() {
    let world = World::new();
    make_tree(&world.root());
    tick();
    run(async {
        let first = world.workspaces.snapshot(&world.root(), &world.options()).await.unwrap();
        world.storage.take();
        let second = again(&world, &first).await;
        assert_eq!(second.reference, first.reference);
        assert_eq!((second.hashed_files, second.hashed_bytes), (0, 0));
        assert_eq!((second.uploaded_objects, second.uploaded_bytes), (0, 0));
        let asked: Vec<_> = world.storage.take().into_iter().map(|(what, _)| what).collect();
        assert_eq!(asked, ["head"], "whether the manifest is there still");
        // Without a base each chunk is asked for, and nothing is written.
        let third = world.workspaces.snapshot(&world.root(), &world.options()).await.unwrap();
        assert_eq!((third.reference, third.hashed_files, third.uploaded_objects), (first.reference, 0, 0));
        // Without a cache all is read, and nothing is written.
        let fourth = world.snapshot().await;
        assert_eq!(
            (fourth.reference, fourth.hashed_files, fourth.uploaded_objects),
            (first.reference, 10, 0)
        );
    });
}

#[test]
fn one_changed_file_is_one_object() {
    let world = World::new();
    make_tree(&world.root());
    tick();
    run(async {
        let first = world.workspaces.snapshot(&world.root(), &world.options()).await.unwrap();
        write(world.root().join("hello.txt"), "hallo");
        world.storage.take();
        let second = again(&world, &first).await;
        assert_ne!(second.reference, first.reference);
        assert_eq!((second.hashed_files, second.hashed_bytes, second.uploaded_objects), (1, 5, 2));
        let asked = world.storage.take();
        let count = |wanted| asked.iter().filter(|(what, _)| *what == wanted).count();
        assert_eq!((count("get"), count("head"), count("put")), (1, 2, 2), "{asked:?}");
        assert!(asked.last().unwrap().1.contains("manifests"), "the manifest comes last: {asked:?}");
        // A chunk that has another mode is no other chunk.
        set_mode(world.root().join("hello.txt"), 0o600);
        let third = again(&world, &second).await;
        assert_eq!((third.hashed_files, third.uploaded_objects), (1, 1));
    });
}

/// Nothing has to be read, and the tree is another one all the same.
#[test]
fn what_is_only_removed_or_moved_makes_another_snapshot() {
    let world = World::new();
    make_tree(&world.root());
    tick();
    run(async {
        let mut last = world.workspaces.snapshot(&world.root(), &world.options()).await.unwrap();
        let changes: [fn(&std::path::Path); 4] = [
            |root| std::fs::remove_file(root.join("hello.txt")).unwrap(),
            |root| std::fs::create_dir(root.join("new")).unwrap(),
            |root| set_mode(root.join("dir"), 0o700),
            |root| std::fs::rename(root.join("link"), root.join("link2")).unwrap(),
        ];
        for change in changes {
            change(&world.root());
            let next = again(&world, &last).await;
            assert_ne!(next.reference, last.reference);
            assert_eq!((next.hashed_files, next.uploaded_objects), (0, 1));
            let copy = world.path("copy");
            world.workspaces.restore(&next.reference, &copy, &RestoreOptions::new(NOW)).await.unwrap();
            assert_eq!(read_tree(&copy), read_tree(&world.root()));
            std::fs::remove_dir_all(&copy).unwrap();
            last = next;
        }
    });
}

#[test]
fn an_insertion_into_a_large_file_is_few_objects() {
    let world = World::new();
    let content = noise(3, 24 << 20);
    write(world.root().join("big"), &content);
    run(async {
        let first = world.snapshot().await;
        assert!(first.uploaded_objects > 10, "{}", first.uploaded_objects);
        write(world.root().join("big"), [b"inserted", &content[..]].concat());
        let second = world.snapshot().await;
        assert!(second.uploaded_objects <= 4, "{}", second.uploaded_objects);
    });
}

#[test]
fn equal_content_is_stored_once() {
    let world = World::new();
    for name in ["root/a", "root/b", "other/c"] {
        write(world.path(name), noise(4, 3 << 20));
    }
    run(async {
        let first = world.snapshot().await;
        let chunks = world.workspaces.manifest(&first.reference).await.unwrap().summary().chunks;
        assert_eq!(first.uploaded_objects, chunks + 1);
        let other =
            world.workspaces.snapshot(&world.path("other"), &SnapshotOptions::default()).await.unwrap();
        assert_eq!(other.uploaded_objects, 1, "only the manifest");
    });
}

/// Same size, same time: only that the file is as young as the snapshot says that it must be read again.
#[test]
fn a_change_within_one_tick_is_noticed() {
    let world = World::new();
    let file = world.root().join("file");
    run(async {
        let (mut within, mut before) = (0, None);
        for round in 0..200u32 {
            write(&file, format!("{:08}", round * 2));
            let first = world.workspaces.snapshot(&world.root(), &world.options()).await.unwrap();
            let stat = std::fs::metadata(&file).unwrap();
            std::fs::write(&file, format!("{:08}", round * 2 + 1)).unwrap();
            let after = std::fs::metadata(&file).unwrap();
            let second = again(&world, &first).await;
            assert_ne!(second.reference, first.reference, "round {round}");
            within += u32::from((stat.ctime_nsec(), stat.ctime()) == (after.ctime_nsec(), after.ctime()));
            assert_ne!(before.replace(second.reference), Some(first.reference));
        }
        // Where the clock is fine enough, there is nothing to notice.
        println!("{within} of 200 within one tick");
    });
}

#[test]
fn caches_that_are_damaged_or_foreign_do_no_harm() {
    let world = World::new();
    make_tree(&world.root());
    tick();
    run(async {
        let first = world.workspaces.snapshot(&world.root(), &world.options()).await.unwrap();
        let mut cache = std::fs::read(world.path("cache")).unwrap();
        let at = cache.len() / 2;
        cache[at] ^= 1;
        std::fs::write(world.path("cache"), cache).unwrap();
        let second = again(&world, &first).await;
        assert_eq!((second.reference, second.hashed_files), (first.reference, 10));
        assert_eq!(again(&world, &first).await.hashed_files, 0, "written anew");
        // The cache of another directory.
        std::fs::rename(world.root(), world.path("elsewhere")).unwrap();
        let moved = world.workspaces.snapshot(&world.path("elsewhere"), &world.options()).await.unwrap();
        assert_eq!((moved.reference, moved.hashed_files), (first.reference, 10));
        // None can be written.
        let options = SnapshotOptions { cache: Some(world.path("elsewhere2")), ..world.options() };
        std::fs::create_dir(world.path("elsewhere2.tmp")).unwrap();
        let moved = world.workspaces.snapshot(&world.path("elsewhere"), &options).await.unwrap();
        assert_eq!(moved.reference, first.reference);
    });
}

#[test]
fn chunks_that_were_lost_are_stored_again() {
    let world = World::new();
    make_tree(&world.root());
    tick();
    run(async {
        let first = world.workspaces.snapshot(&world.root(), &world.options()).await.unwrap();
        let keys = world.storage.keys().await;
        let lost: Vec<_> = keys.iter().filter(|key| key.contains("chunks")).take(3).collect();
        for key in &lost {
            world.storage.remove(key).await;
        }
        // With another base than this one, whose chunks are taken for stored.
        let second = world.workspaces.snapshot(&world.root(), &world.options()).await.unwrap();
        assert_eq!(second.reference, first.reference);
        assert_eq!(second.uploaded_objects, 3);
        assert_eq!(world.storage.keys().await, keys);
        // The base itself is lost.
        let manifest = keys.iter().find(|key| key.contains("manifests")).unwrap();
        world.storage.remove(manifest).await;
        assert_eq!(again(&world, &first).await.uploaded_objects, 1);
        assert_eq!(world.storage.keys().await, keys);
    });
}

#[test]
fn a_file_that_never_rests_is_reported() {
    let world = World::new();
    let path = world.root().join("busy");
    write(&path, noise(5, 16 << 20));
    write(world.root().join("still"), "x");
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use std::os::unix::fs::FileExt;
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                file.write_all_at(b"x", 0).unwrap();
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
        });
        run(async {
            let snapshot = world.workspaces.snapshot(&world.root(), &world.options()).await.unwrap();
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(snapshot.changed);
            assert_eq!(snapshot.skipped.len(), 1);
            assert_eq!(snapshot.skipped[0].reason, SkipReason::ChangedWhileRead);
            assert_eq!(snapshot.files, 2, "it is in the snapshot all the same");
            let copy = world.path("copy");
            world.workspaces.restore(&snapshot.reference, &copy, &RestoreOptions::new(NOW)).await.unwrap();
        });
    });
    tick();
    run(async {
        let second = world.workspaces.snapshot(&world.root(), &world.options()).await.unwrap();
        assert_eq!(
            (second.changed, second.hashed_files >= 1),
            (false, true),
            "it is not taken from the cache"
        );
    });
}
