//! The collection of bodies.

use outlast_session::Lease;
use outlast_session::collect::{GcError, GcOptions, GcResult};
use outlast_session::upkeep::UpkeepOptions;
use outlast_store::Ledger;

use super::world::{HOUR, World, checkpoint, large, message, run};

pub async fn lease(world: &World) -> Lease {
    world.sessions.acquire_lease(&world.id("t")).await.unwrap()
}

pub async fn gc(world: &World, options: &GcOptions) -> Result<GcResult, GcError> {
    let held = lease(world).await;
    let done = world.sessions.open_object_gc(&world.head("t").await, &held).gc(options).await;
    held.release(None).await.unwrap();
    done
}

fn deletes(world: &World) -> Vec<String> {
    let done = world.trouble.take();
    done.iter().filter_map(|done| done.strip_prefix("delete ")).map(ToOwned::to_owned).collect()
}

/// A session with two bodies that are pointed to, and three orphans, in order.
pub async fn littered() -> (World, Vec<String>) {
    let world = World::new();
    world.add("t", vec![message("w", 1, &large("one ")), message("w", 2, &large("two "))]).await;
    let mut orphans = Vec::new();
    for digit in ['c', 'a', 'b'] {
        orphans.push(world.orphan("t", digit).await);
    }
    orphans.sort();
    world.age();
    world.trouble.take();
    (world, orphans)
}

#[test]
fn orphans_go_and_what_is_pointed_to_stays() {
    run(async {
        let (world, orphans) = littered().await;
        let before = world.keys("t").await;
        let done = gc(&world, &world.options()).await.unwrap();
        let expected = GcResult {
            scanned: 5,
            referenced: 2,
            kept: 0,
            deleted: 3,
            deleted_keys: orphans.clone(),
            dry_run: false,
        };
        assert_eq!(done, expected);
        assert_eq!(deletes(&world), orphans, "in order");
        let left: Vec<String> = before.into_iter().filter(|key| !orphans.contains(key)).collect();
        assert_eq!(world.keys("t").await, left);
        for stored in world.read("t").await {
            world.sessions.bodies().resolve_record(&world.id("t"), &stored).await.unwrap();
        }
        let last = world.read("t").await.pop().unwrap();
        assert_eq!(last.kind, "barrier");
        let again = gc(&world, &world.options()).await.unwrap();
        assert_eq!(again, GcResult { scanned: 2, referenced: 2, ..GcResult::default() });
    });
}

#[test]
fn events_and_messages_of_runs_point_too() {
    run(async {
        let world = World::new();
        world.turn("t", "r").await;
        let before = world.keys("t").await;
        assert_eq!(before.len(), 2, "an event and a message");
        let orphan = world.orphan("t", 'a').await;
        world.age();
        let done = gc(&world, &world.options()).await.unwrap();
        assert_eq!((done.referenced, done.deleted_keys), (2, vec![orphan]));
        assert_eq!(world.keys("t").await, before);
    });
}

#[test]
fn nothing_only_orphans_and_an_empty_session() {
    run(async {
        let world = World::new();
        world.add("t", vec![message("w", 1, "small"), checkpoint("c", 1, None)]).await;
        world.age();
        assert_eq!(gc(&world, &world.options()).await.unwrap(), GcResult::default(), "empty");
        let orphan = world.orphan("t", 'a').await;
        world.age();
        let done = gc(&world, &world.options()).await.unwrap();
        let expected = GcResult { scanned: 1, deleted: 1, deleted_keys: vec![orphan], ..GcResult::default() };
        assert_eq!(done, expected, "only orphans");
        world.add("t", vec![message("w", 2, &large("two "))]).await;
        world.age();
        let done = gc(&world, &world.options()).await.unwrap();
        assert_eq!(done, GcResult { scanned: 1, referenced: 1, ..GcResult::default() }, "nothing orphaned");
        assert_eq!(deletes(&world).len(), 1);
    });
}

#[test]
fn of_an_incomplete_scan_nothing_is_deleted() {
    run(async {
        let (world, _) = littered().await;
        for what in ["read_records", "pointers"] {
            world.trouble.fail_on(what);
            let failed = gc(&world, &world.options()).await.unwrap_err();
            assert!(matches!(&failed, GcError::Scan(_)), "{failed}");
            assert_eq!(failed.partial(), GcResult::default());
            world.trouble.heal();
        }
        type Alter = fn(&mut outlast_store::StoredRecord);
        let damages: [Alter; 4] = [
            |record| record.sum = record.sum.replace(|_: char| true, "0"),
            |record| record.kind = "of_tomorrow".to_owned(),
            |record| record.seq += 1,
            |record| record.pointer.iter_mut().for_each(|pointer| pointer.key = "elsewhere".to_owned()),
        ];
        for damage in damages {
            world.trouble.alter_records(damage);
            let failed = gc(&world, &world.options()).await;
            assert!(matches!(failed, Err(GcError::Scan(_))), "{failed:?}");
            world.trouble.heal();
        }
        assert_eq!(deletes(&world), Vec::<String>::new());
        assert_eq!(world.keys("t").await.len(), 5);
    });
}

#[test]
fn of_an_incomplete_listing_nothing_is_deleted() {
    run(async {
        let (world, _) = littered().await;
        for what in ["list sessions", "now"] {
            world.trouble.fail_on(what);
            let failed = gc(&world, &world.options()).await.unwrap_err();
            assert!(matches!(&failed, GcError::List(error) if error.prefix == world.id("t").blobs_prefix()));
            world.trouble.heal();
        }
        assert_eq!(deletes(&world), Vec::<String>::new());
        assert_eq!(gc(&world, &world.options()).await.unwrap().deleted, 3);
    });
}

#[test]
fn without_the_lease_nothing_is_done() {
    run(async {
        let (world, _) = littered().await;
        let held = lease(&world).await;
        let head = world.head("t").await;
        world.clock.advance(HOUR);
        assert!(!held.valid());
        world.trouble.take();
        let failed = world.sessions.open_object_gc(&head, &held).gc(&world.options()).await;
        let Err(GcError::LeaseNotHeld(error)) = failed else { panic!("{failed:?}") };
        assert_eq!((error.epoch, &error.partial), (held.epoch(), &GcResult::default()));
        assert_eq!(world.trouble.take(), Vec::<String>::new(), "not even a barrier");

        // The store has another holder, which the host does not know yet.
        let held = lease(&world).await;
        world.store.release_lease(held.token(), None).await.unwrap();
        assert!(held.valid());
        let failed = world.sessions.open_object_gc(&head, &held).gc(&world.options()).await;
        assert!(matches!(failed, Err(GcError::LeaseNotHeld(_))), "{failed:?}");
        assert_eq!(deletes(&world), Vec::<String>::new());
        assert_eq!(world.read("t").await.len(), 2, "no barrier of somebody who may not");
    });
}

#[test]
fn a_lease_that_is_lost_in_the_middle_stops_the_pass() {
    run(async {
        let (world, orphans) = littered().await;
        let clock = world.clock.clone();
        world.trouble.when(&format!("delete {}", orphans[0]), move || clock.advance(HOUR));
        let held = lease(&world).await;
        let failed = world.sessions.open_object_gc(&world.head("t").await, &held).gc(&world.options()).await;
        let Err(GcError::LeaseNotHeld(error)) = &failed else { panic!("{failed:?}") };
        let partial = GcResult {
            scanned: 5,
            referenced: 2,
            deleted: 1,
            deleted_keys: orphans[..1].to_vec(),
            ..GcResult::default()
        };
        assert_eq!(error.partial, partial);
        assert_eq!(deletes(&world), orphans[..1]);
        drop(held);
        let done = gc(&world, &world.options()).await.unwrap();
        assert_eq!(done.deleted_keys, orphans[1..], "the next one finishes");
    });
}

#[test]
fn a_delete_that_fails_stops_the_pass() {
    run(async {
        let (world, orphans) = littered().await;
        world.trouble.fail_on(&format!("delete {}", orphans[1]));
        let failed = gc(&world, &world.options()).await;
        let Err(GcError::Delete(error)) = &failed else { panic!("{failed:?}") };
        assert_eq!(error.key, orphans[1]);
        assert_eq!((error.partial.deleted, &error.partial.deleted_keys[..]), (1, &orphans[..1]));
        assert_eq!(deletes(&world), orphans[..2], "the third is not tried");
        world.trouble.heal();
        let done = gc(&world, &world.options()).await.unwrap();
        assert_eq!(done.deleted_keys, orphans[1..]);
        assert_eq!(world.keys("t").await.len(), 2);
    });
}

#[test]
fn a_pass_that_nobody_wants_any_more_stops() {
    run(async {
        let (world, orphans) = littered().await;
        let held = lease(&world).await;
        let asked = std::sync::atomic::AtomicU32::new(0);
        // At the entry, and before each delete.
        let wanted = || asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 2;
        let head = world.head("t").await;
        let stopped = world.sessions.open_object_gc(&head, &held).gc_while(&world.options(), &wanted).await;
        assert_eq!(stopped.unwrap_err().partial().deleted_keys, orphans[..1]);
    });
}

#[test]
fn what_is_not_understood_or_young_is_kept_and_counted() {
    run(async {
        let (world, orphans) = littered().await;
        let digest = "0123456789abcdef".repeat(4);
        let foreign =
            [digest.to_uppercase(), format!("{digest}.tmp"), format!("notes/{digest}"), "README".into()];
        for name in &foreign {
            world.put("t", name).await;
        }
        let young = world.orphan("t", '1').await;
        let future = world.orphan("t", '2').await;
        world.age();
        let now = outlast_store::Store::now(&world.store).await.unwrap();
        {
            let mut modified = world.trouble.modified.lock().unwrap();
            modified.insert(young, now - 3_599_999);
            modified.insert(future, now + 1);
            modified.insert(orphans[0].clone(), now - 3_600_000);
        }
        let done = gc(&world, &world.options()).await.unwrap();
        assert_eq!((done.scanned, done.referenced, done.kept, done.deleted), (11, 2, 6, 3));
        assert_eq!(done.deleted_keys, orphans);
        let none = gc(&world, &GcOptions { grace: 10 * HOUR, ..world.options() }).await.unwrap();
        assert_eq!((none.deleted, none.kept), (0, 6));
    });
}

#[test]
fn already_gone_is_success() {
    run(async {
        let (world, orphans) = littered().await;
        let (bucket, gone) = (world.bucket.clone(), orphans[1].clone());
        world.trouble.when("delete", move || {
            let deleted = futures_util::FutureExt::now_or_never(bucket.delete(&gone));
            deleted.unwrap().unwrap();
        });
        assert_eq!(gc(&world, &world.options()).await.unwrap().deleted_keys, orphans);
    });
}

#[test]
fn a_dry_run_leaves_no_trace() {
    run(async {
        let (world, orphans) = littered().await;
        let (records, keys) = (world.read("t").await, world.keys("t").await);
        let dry = GcOptions { dry_run: true, ..world.options() };
        let told = gc(&world, &dry).await.unwrap();
        let expected = GcResult {
            scanned: 5,
            referenced: 2,
            deleted: 3,
            deleted_keys: orphans.clone(),
            dry_run: true,
            ..GcResult::default()
        };
        assert_eq!(told, expected);
        let head = world.head("t").await;
        assert_eq!(world.sessions.collect(&head, &dry, &|| true).await.unwrap(), expected);
        let options = UpkeepOptions { gc: dry, ..UpkeepOptions::default() };
        let upkeep = world.sessions.upkeep(&options, &|| true).await;
        assert_eq!(upkeep.sessions[0].result, expected);
        assert_eq!(deletes(&world), Vec::<String>::new());
        assert_eq!((world.read("t").await, world.keys("t").await), (records, keys));
        assert!(world.store.condemn(lease(&world).await.token(), &[]).await.unwrap().is_empty());
    });
}
