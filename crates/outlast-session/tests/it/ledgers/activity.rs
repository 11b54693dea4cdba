//! The end of an activity.

use outlast_core::ledger::StopReason;
use outlast_session::collect::GcOptions;
use outlast_session::upkeep::UpkeepOptions;

use super::world::{World, large, message, run};

fn place(done: &[String], what: &str) -> usize {
    done.iter().position(|done| done.starts_with(what)).unwrap_or_else(|| panic!("no {what} in {done:#?}"))
}

async fn littered() -> World {
    let world = World::new();
    world.turn("t", "r").await;
    for digit in "abcdef".chars() {
        world.orphan("t", digit).await;
    }
    world.age();
    world.trouble.take();
    world
}

#[test]
fn first_the_collection_then_the_record_then_the_lease() {
    run(async {
        let world = littered().await;
        let mut activity = world.sessions.look_after(world.head("t").await).await.unwrap();
        activity.collect(GcOptions::default()).await;
        assert!(activity.join().await.unwrap().is_ok());
        activity.collect(GcOptions::default()).await;
        assert!(activity.stop(StopReason::User, Some(7)).await.unwrap());
        let done = world.trouble.take();
        let last = done.iter().rposition(|done| done.starts_with("delete ")).unwrap();
        let record = place(&done, "append_records session_stopped");
        let release = place(&done, "release_lease");
        assert!(last < record && record < release, "{done:#?}");
        let head = world.head("t").await;
        assert_eq!((head.note.map(|(note, _)| note), head.lease), (Some(7), None));
        assert!(head.fold.unwrap().stopped.is_some());
    });
}

#[test]
fn a_collection_is_stopped_in_the_middle() {
    run(async {
        let world = littered().await;
        let mut activity = world.sessions.look_after(world.head("t").await).await.unwrap();
        activity.collect(GcOptions::default()).await;
        // Until it deletes; the end comes while it is at the first one.
        let begun = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        world.trouble.when("delete ", {
            let begun = begun.clone();
            move || begun.store(true, std::sync::atomic::Ordering::SeqCst)
        });
        while !begun.load(std::sync::atomic::Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        activity.stop(StopReason::Idle, None).await.unwrap();
        let done = world.trouble.take();
        let record = place(&done, "append_records session_stopped");
        assert!(!done[record..].iter().any(|done| done.starts_with("delete ")), "{done:#?}");
    });
}

#[test]
fn dropped_its_collection_stops() {
    run(async {
        let world = littered().await;
        let activity = world.sessions.look_after(world.head("t").await).await.unwrap();
        // Dropped by the first delete, which is the last.
        let shared = std::sync::Arc::new(std::sync::Mutex::new(Some(activity)));
        let dropped = shared.clone();
        world.trouble.when("delete ", move || drop(dropped.lock().unwrap().take()));
        let mut taken = shared.lock().unwrap().take().unwrap();
        taken.collect(GcOptions::default()).await;
        *shared.lock().unwrap() = Some(taken);
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        let done = world.trouble.take();
        assert_eq!(done.iter().filter(|done| done.starts_with("delete ")).count(), 1, "{done:#?}");
        assert!(world.head("t").await.lease.is_some(), "it runs out");
        world.clock.advance(std::time::Duration::from_secs(30));
        assert!(world.head("t").await.lease.is_none());
    });
}

#[test]
fn what_has_happened_since_is_no_end() {
    run(async {
        let world = littered().await;
        let activity = world.sessions.look_after(world.head("t").await).await.unwrap();
        world.start("t", "later").await;
        assert!(!activity.stop(StopReason::Idle, None).await.unwrap());
        let head = world.head("t").await;
        assert!(head.fold.unwrap().stopped.is_none());
        assert!(head.lease.is_none(), "it is given back all the same");
    });
}

#[test]
fn a_record_after_a_collections_barrier_is_no_end() {
    run(async {
        let world = littered().await;
        let mut activity = world.sessions.look_after(world.head("t").await).await.unwrap();
        activity.collect(GcOptions::default()).await;
        activity.join().await.unwrap().unwrap();
        world.add("t", vec![message("w", 1, &large("one "))]).await;
        assert!(!activity.stop(StopReason::Idle, None).await.unwrap());
        assert!(world.head("t").await.fold.unwrap().stopped.is_none());
    });
}

#[test]
fn closing_leaves_no_record() {
    run(async {
        let world = littered().await;
        let mut activity = world.sessions.look_after(world.head("t").await).await.unwrap();
        activity.collect(GcOptions::default()).await;
        activity.close(None).await.unwrap();
        let head = world.head("t").await;
        assert!(head.lease.is_none() && head.fold.unwrap().stopped.is_none());
    });
}

#[test]
fn the_upkeep_ends_what_rests_once() {
    run(async {
        let world = littered().await;
        world.start("busy", "b").await;
        for expected in [1, 0, 0] {
            let done = world.sessions.upkeep(&UpkeepOptions::default(), &|| true).await;
            assert_eq!(done.sessions.iter().filter(|session| session.stopped).count(), expected);
            assert!(!done.failed(), "{done:?}");
        }
        assert!(world.head("t").await.fold.unwrap().stopped.is_some());
        assert!(world.head("busy").await.fold.unwrap().stopped.is_none());
        world.start("t", "again").await;
        assert!(world.head("t").await.fold.unwrap().stopped.is_none(), "it has begun again");
    });
}
