//! Collections beside whatever else goes on.

use outlast_session::upkeep::{CollectError, UpkeepOptions};

use super::collected::{gc, lease, littered};
use super::world::{World, large, message, run};

#[test]
fn a_body_that_was_condemned_is_put_under_another_key() {
    run(async {
        let world = World::new();
        world.add("t", vec![message("w", 1, "small")]).await;
        // Put, and never pointed to.
        let new = message("w", 2, &large("two "));
        let light =
            world.sessions.bodies().lighten_records(&world.id("t"), std::slice::from_ref(&new), None).await;
        let key = light.unwrap()[0].pointer().unwrap().key.clone();
        world.age();
        assert_eq!(gc(&world, &world.options()).await.unwrap().deleted_keys, std::slice::from_ref(&key));
        let seq = world.add("t", vec![new.clone()]).await;
        assert_eq!(world.add("t", vec![new.clone()]).await, seq, "the same record again");
        let stored = &world.read("t").await[2];
        assert_ne!(stored.pointer.as_ref().unwrap().key, key);
        let read = world.sessions.bodies().resolve_record(&world.id("t"), stored).await.unwrap();
        assert_eq!(read, Some(new.record));
    });
}

#[test]
fn somebody_else_collects() {
    run(async {
        let (world, _) = littered().await;
        let held = lease(&world).await;
        let refused = world.sessions.collect(&world.head("t").await, &world.options(), &|| true).await;
        assert!(matches!(refused, Err(CollectError::Lease(_))), "{refused:?}");
        let upkeep = world.sessions.upkeep(&UpkeepOptions::default(), &|| true).await;
        assert_eq!(upkeep.sessions[0].held_by.as_ref().map(|owner| owner.as_str()), Some("host"));
        assert!(!upkeep.failed());
        held.release(None).await.unwrap();
        let upkeep = world.sessions.upkeep(&UpkeepOptions::default(), &|| true).await;
        assert_eq!(upkeep.sessions[0].result.deleted, 3);
    });
}

#[test]
fn a_barrier_is_written_only_where_there_is_something_to_collect() {
    run(async {
        let world = World::new();
        world.add("t", vec![message("w", 1, &large("one "))]).await;
        world.age();
        for _ in 0..3 {
            world.sessions.upkeep(&UpkeepOptions::default(), &|| true).await;
        }
        assert!(world.read("t").await.iter().all(|stored| stored.kind != "barrier"));
        world.trouble.take();
        world.sessions.upkeep(&UpkeepOptions::default(), &|| true).await;
        let done = world.trouble.take();
        assert!(!done.iter().any(|done| done.starts_with("list sessions/")), "nothing is due: {done:?}");
    });
}
