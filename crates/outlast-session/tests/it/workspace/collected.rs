//! Collections: nothing that is live is ever unreadable, whatever goes wrong, and the next one finishes.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};

use outlast_core::WorkspaceRef;
use outlast_session::workspace::{
    GcInput, GcReport, RestoreOptions, SnapshotOptions, WorkspaceGcError, WorkspaceReadError,
};

use super::support::*;

const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;

/// Storage with two live snapshots and one that nothing refers to, which share some content.
struct Store {
    world: World,
    live: BTreeSet<WorkspaceRef>,
    dead: WorkspaceRef,
    /// When everything has been there for a long time, on the storage's clock.
    late: u64,
}

impl Store {
    async fn new() -> Store {
        let world = World::new();
        let mut refs = Vec::new();
        for n in 0..3u8 {
            write(world.root().join("shared"), "in all of them");
            write(world.root().join("own"), [n]);
            write(world.root().join(format!("more{n}")), [n, n]);
            refs.push(world.snapshot().await.reference);
        }
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let late = u64::try_from(now.as_millis()).unwrap() + 2 * HOUR;
        Store { world, live: [refs[0], refs[2]].into(), dead: refs[1], late }
    }

    fn input(&self, now: u64) -> GcInput {
        GcInput::new(self.live.clone(), now)
    }

    async fn collect(&self, input: &GcInput) -> GcReport {
        self.world.workspaces.collect(input, &|| true).await.unwrap()
    }

    async fn readable(&self, reference: &WorkspaceRef) -> bool {
        let copy = self.world.path("copy");
        let restored = self.world.workspaces.restore(reference, &copy, &RestoreOptions::new(NOW)).await;
        let _ = std::fs::remove_dir_all(&copy);
        match restored {
            Ok(_) => true,
            Err(outlast_session::workspace::RestoreError::Read(WorkspaceReadError::Missing { .. })) => false,
            Err(error) => panic!("{error}"),
        }
    }

    async fn check_live(&self, when: &str) {
        for reference in &self.live {
            assert!(self.readable(reference).await, "{when}");
        }
    }
}

#[test]
fn what_nothing_refers_to_goes_in_two_steps() {
    run(async {
        let store = Store::new().await;
        let all = store.world.storage.keys().await;
        // 3 manifests, "shared", 3 x "own", 3 x "more".
        assert_eq!(all.len(), 10);
        let early = store.collect(&store.input(store.late - 2 * HOUR)).await;
        assert_eq!((early.kept, early.quarantined, early.live), (3 - 1, 0, 8), "{early:?}");
        let dry = store.collect(&GcInput { dry_run: true, ..store.input(store.late) }).await;
        assert_eq!(store.world.storage.keys().await, all);
        let first = store.collect(&store.input(store.late)).await;
        assert_eq!(dry, first);
        assert_eq!(
            (first.live_refs, first.listed, first.live, first.quarantined, first.deleted),
            (2, 10, 8, 2, 0)
        );
        assert!(first.quarantined_bytes > 0);
        store.check_live("after the first step").await;
        assert!(store.readable(&store.dead).await, "aside is not gone");
        let second = store.collect(&store.input(store.late + DAY - 1)).await;
        assert_eq!((second.waiting, second.deleted), (2, 0));
        let third = store.collect(&store.input(store.late + DAY)).await;
        assert_eq!((third.waiting, third.deleted), (0, 2));
        assert_eq!(third.deleted_bytes, first.quarantined_bytes);
        assert!(!store.readable(&store.dead).await);
        store.check_live("after the last step").await;
        let fourth = store.collect(&store.input(store.late + 2 * DAY)).await;
        assert_eq!((fourth.listed, fourth.live), (8, 8));
        assert_eq!(serde_json::to_value(&fourth).unwrap()["heldByPins"], 0);
    });
}

#[test]
fn what_is_referred_to_again_comes_back() {
    run(async {
        let mut store = Store::new().await;
        let all = store.world.storage.keys().await;
        store.collect(&store.input(store.late)).await;
        store.live.insert(store.dead);
        let report = store.collect(&store.input(store.late + 2 * DAY)).await;
        assert_eq!((report.restored, report.deleted, report.live), (2, 0, 10));
        assert!(
            all.iter()
                .all(|key| futures_util::FutureExt::now_or_never(store.world.storage.read(key)).is_some())
        );
        store.check_live("back").await;
        let again = store.collect(&store.input(store.late + 3 * DAY)).await;
        assert_eq!((again.restored, again.deleted), (0, 0));
    });
}

#[test]
fn a_snapshot_under_way_holds_what_it_may_have_found() {
    run(async {
        let store = Store::new().await;
        let began = store.late - 1;
        store.collect(&store.input(store.late)).await;
        let pinned = GcInput { oldest_pin: Some(began), ..store.input(store.late + 9 * DAY) };
        assert_eq!(store.collect(&pinned).await.held_by_pins, 2);
        assert!(store.readable(&store.dead).await);
        let later = GcInput { oldest_pin: Some(store.late + 1), ..store.input(store.late + 9 * DAY) };
        assert_eq!(store.collect(&later).await.deleted, 2);
    });
}

#[test]
fn what_a_snapshot_finds_while_it_is_collected_can_be_restored() {
    run(async {
        let mut store = Store::new().await;
        let dead = store.world.workspaces.manifest(&store.dead).await.unwrap();
        store.collect(&store.input(store.late)).await;
        // Some of it is aside, so it is stored again, some is not.
        let copy = store.world.path("again");
        store.world.workspaces.restore(&store.dead, &copy, &RestoreOptions::new(NOW)).await.unwrap();
        let snapshot = store.world.workspaces.snapshot(&copy, &SnapshotOptions::default()).await.unwrap();
        assert_eq!(snapshot.reference, dead.reference());
        store.live.insert(snapshot.reference);
        let report = store.collect(&store.input(store.late + 9 * DAY)).await;
        assert_eq!(report.missing, [""; 0]);
        store.check_live("stored again").await;
    });
}

#[test]
fn without_lease_or_with_too_few_live_nothing_is_done() {
    run(async {
        let store = Store::new().await;
        store.world.storage.take();
        let input = store.input(store.late);
        let refused = store.world.workspaces.collect(&input, &|| false).await;
        assert!(matches!(refused, Err(WorkspaceGcError::NotHeld)));
        for (expected, refuses) in [(7, false), (8, true), (6, false), (u64::MAX, true)] {
            let input = GcInput { previous_live: Some(expected), dry_run: true, ..input.clone() };
            let found = store.world.workspaces.collect(&input, &|| true).await;
            let shrank = matches!(found, Err(WorkspaceGcError::LiveSetShrank { found: 2, .. }));
            assert_eq!(shrank, refuses, "{expected}: {found:?}");
        }
        let forced = GcInput { previous_live: Some(100), force: true, ..input };
        assert_eq!(store.collect(&forced).await.quarantined, 2);
    });
}

#[test]
fn a_live_snapshot_that_cannot_be_read_stops_everything() {
    run(async {
        let store = Store::new().await;
        let reference = *store.live.first().unwrap();
        let key = format!("workspaces/manifests/{}", reference.hex());
        let whole = store.world.storage.read(&key).await;
        for body in [None, Some(&b"damaged"[..])] {
            match body {
                Some(body) => store.world.storage.write(&key, body).await,
                None => store.world.storage.remove(&key).await,
            }
            let before = store.world.storage.keys().await;
            let failed = store.world.workspaces.collect(&store.input(store.late), &|| true).await;
            let told = matches!(&failed, Err(WorkspaceGcError::Manifest { reference: named, .. }) if *named == reference);
            assert!(told, "{failed:?}");
            assert!(failed.unwrap_err().report().is_none());
            assert_eq!(store.world.storage.keys().await, before);
        }
        // Aside it is as good, and comes back.
        store.world.storage.remove(&key).await;
        let aside = format!("workspaces/quarantine/1700000000000/manifests/{}", reference.hex());
        store.world.storage.write(&aside, &whole).await;
        assert_eq!(store.collect(&store.input(store.late)).await.restored, 1);
        assert_eq!(store.world.storage.read(&key).await, whole);
        // A chunk that is lost is told, and stops nothing.
        let keys = store.world.storage.keys().await;
        let shared = outlast_session::workspace::Digest::of(b"in all of them").hex();
        let shared = keys.iter().find(|key| key.ends_with(&shared)).unwrap();
        store.world.storage.remove(shared).await;
        assert_eq!(store.collect(&store.input(store.late)).await.missing, std::slice::from_ref(shared));
    });
}

#[test]
fn what_is_not_understood_stays() {
    run(async {
        let store = Store::new().await;
        let foreign =
            ["workspaces/chunks/readme", "workspaces/other/x", "workspaces/quarantine/soon/chunks/x"];
        for key in foreign {
            store.world.storage.write(key, b"x").await;
        }
        store.world.storage.write("blobs/x", b"x").await;
        for day in 0..3 {
            assert_eq!(store.collect(&store.input(store.late + day * DAY)).await.foreign, 3);
        }
        let keys = store.world.storage.keys().await;
        assert!(foreign.iter().all(|key| keys.iter().any(|found| found == key)));
        assert_eq!(keys.len(), 8 + 4);
    });
}

/// The storage fails, or the lease is lost, at the k-th operation, for every k, in every phase.
#[test]
fn whatever_goes_wrong_nothing_live_is_lost_and_the_next_one_finishes() {
    run(async {
        for by_lease in [false, true] {
            let mut reached_end = false;
            for k in 0..200 {
                let mut store = Store::new().await;
                // So that there is something to put aside, to copy back and to delete at once.
                store.collect(&store.input(store.late)).await;
                let revived = *store.live.last().unwrap();
                let kept = *store.live.first().unwrap();
                store.live = [kept].into();
                store.collect(&store.input(store.late + 10)).await;
                store.live = [store.dead, revived].into();
                let now = store.late + 2 * DAY;
                let left = AtomicI64::new(if by_lease { k } else { i64::MAX });
                if !by_lease {
                    store.world.storage.fail_after(k);
                }
                let held = || left.fetch_sub(1, Ordering::SeqCst) > 0;
                let result = store.world.workspaces.collect(&store.input(now), &held).await;
                store.world.storage.heal();
                store.check_live(&format!("{k}, lease {by_lease}: {result:?}")).await;
                reached_end = result.is_ok();
                if let Err(error) = result {
                    match (&error, by_lease) {
                        (WorkspaceGcError::NotHeld, true) => assert_eq!(k, 0),
                        (WorkspaceGcError::Lost { .. }, true)
                        | (
                            WorkspaceGcError::Manifest { .. }
                            | WorkspaceGcError::List { .. }
                            | WorkspaceGcError::Copy { .. }
                            | WorkspaceGcError::Delete { .. },
                            false,
                        ) => {}
                        _ => panic!("{error}"),
                    }
                }
                store.collect(&store.input(now)).await;
                let last = store.collect(&store.input(now + 2 * DAY)).await;
                assert_eq!(last.missing, [""; 0]);
                store.check_live("in the end").await;
                assert!(!store.readable(&kept).await, "what is dead goes");
                let last = store.collect(&store.input(now + 4 * DAY)).await;
                assert_eq!((last.kept, last.waiting, last.quarantined, last.deleted), (0, 0, 0, 0));
                if reached_end {
                    assert!(k > 5);
                    break;
                }
            }
            assert!(reached_end);
        }
    });
}
