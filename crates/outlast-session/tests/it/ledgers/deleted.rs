//! The end of sessions.

use std::time::Duration;

use outlast_core::decide::{DeleteRefusal, SessionState};
use outlast_session::upkeep::{DeleteSessionError, UpkeepOptions};
use outlast_store::{DeleteError, ListRuns, Runs, SessionName};

use super::world::{HOUR, World, checkpoint, large, message, run, thread};

fn name(text: &str) -> SessionName {
    SessionName::Thread(thread(text))
}

/// Two sessions with all that a session may have.
async fn two() -> World {
    let world = World::new();
    for thread in ["t", "other"] {
        world.turn(thread, &format!("r-{thread}")).await;
        let run = format!("w-{thread}");
        world.add(thread, vec![message(&run, 1, &large("one ")), checkpoint("c", 1, None)]).await;
        world.orphan(thread, 'a').await;
        world.put(thread, "README").await;
    }
    world.trouble.take();
    world
}

async fn runs(world: &World, text: &str) -> usize {
    let query = ListRuns { thread_id: Some(thread(text)), limit: 10, ..ListRuns::default() };
    world.store.list_runs(&query).await.unwrap().len()
}

/// Everything of the one is gone, and nothing of the other.
async fn check(world: &World, what: &str) {
    let head = world.head("t").await;
    assert_eq!(head.state, SessionState::Deleted, "{what}");
    assert!(head.deleted_at.is_some() && head.lease.is_none(), "{what}: {head:?}");
    assert_eq!(world.keys("t").await, Vec::<String>::new(), "{what}");
    assert_eq!(runs(world, "t").await, 0, "{what}");
    let refused = world.sessions.append(world.records("t", vec![message("w", 9, "late")])).await;
    assert!(refused.unwrap_err().to_string().contains("was deleted"), "{what}");
    assert_eq!(world.head("other").await.state, SessionState::Active, "{what}");
    assert_eq!((world.keys("other").await.len(), runs(world, "other").await), (5, 1), "{what}");
    for stored in world.read("other").await {
        world.sessions.bodies().resolve_record(&world.id("other"), &stored).await.unwrap();
    }
}

#[test]
fn all_of_it_goes_and_nothing_else() {
    run(async {
        let world = two().await;
        let deleted = world.sessions.delete(&world.tenant, &name("t"), None).await.unwrap();
        assert_eq!((deleted.runs, deleted.objects), (1, 5));
        assert_eq!(deleted.thread_id, thread("t"));
        let done = world.trouble.take();
        let place = |what: &str| done.iter().position(|done| done.starts_with(what)).unwrap();
        assert!(place("begin_delete") < place("delete_rows"), "{done:#?}");
        assert!(place("delete_rows") < place("delete sessions/"), "{done:#?}");
        let last = done.iter().rposition(|done| done.starts_with("delete sessions/")).unwrap();
        assert!(last < place("end_delete"), "{done:#?}");
        check(&world, "deleted").await;
        let again = world.sessions.delete(&world.tenant, &name("t"), None).await.unwrap();
        assert_eq!((again.runs, again.rows, again.objects), (0, 0, 0), "again is harmless");
    });
}

#[test]
fn a_deletion_that_fails_anywhere_is_finished_by_the_next() {
    run(async {
        for by_upkeep in [false, true] {
            let mut operation = 0;
            loop {
                let world = two().await;
                world.trouble.fail_after(operation);
                let failed = world.sessions.delete(&world.tenant, &name("t"), None).await;
                let done = world.trouble.take();
                world.trouble.heal();
                if failed.is_ok() && (done.len() as i64) <= operation {
                    break;
                }
                let what = format!("operation {operation}: {:?}", done.last());
                let begun = world.head("t").await.state != SessionState::Active;
                assert!(begun || operation == 0, "{what}: the tombstone comes first");
                match by_upkeep && begun {
                    true => {
                        // A lease of whoever died runs out.
                        world.clock.advance(Duration::from_secs(60));
                        world.sessions.upkeep(&UpkeepOptions::default(), &|| true).await;
                    }
                    false if failed.is_ok() => world.clock.advance(Duration::from_secs(60)),
                    // At once: what has failed has given its lease back.
                    false => drop(world.sessions.delete(&world.tenant, &name("t"), None).await.unwrap()),
                }
                check(&world, &what).await;
                operation += 1;
            }
            assert!(operation > 8, "each step had its turn: {operation}");
        }
    });
}

#[test]
fn a_live_run_or_a_recent_one_is_in_the_way() {
    run(async {
        let world = two().await;
        world.start("t", "live").await;
        let refused = world.sessions.delete(&world.tenant, &name("t"), None).await;
        let live = DeleteSessionError::Delete(DeleteError::Refused(DeleteRefusal::Live {
            session_id: world.id("t"),
            run_id: super::world::run_id("live"),
        }));
        assert_eq!(refused.unwrap_err().to_string(), live.to_string());
        let refused = world.sessions.delete(&world.tenant, &name("other"), Some(HOUR)).await;
        assert!(
            matches!(refused, Err(DeleteSessionError::Delete(DeleteError::Refused(DeleteRefusal::Used(_))))),
            "{refused:?}"
        );
        world.age();
        assert_eq!(world.sessions.count_idle(&world.tenant, HOUR).await.unwrap(), 1);
        let none = world.sessions.delete_idle(&world.tenant, HOUR, &|| false).await.unwrap();
        assert!(none.more && none.sessions.is_empty());
        let done = world.sessions.delete_idle(&world.tenant, HOUR, &|| true).await.unwrap();
        assert_eq!(done.sessions.len(), 1);
        assert_eq!(done.sessions[0].thread_id, thread("other"));
        let refused = world.sessions.delete(&world.tenant, &name("nobody"), None).await;
        assert!(refused.unwrap_err().to_string().contains("there is no session"));
    });
}

#[test]
fn another_look_finds_what_came_late() {
    run(async {
        let world = two().await;
        world.sessions.delete(&world.tenant, &name("t"), None).await.unwrap();
        // A put that was on its way.
        world.orphan("t", 'b').await;
        let upkeep = || async { world.sessions.upkeep(&UpkeepOptions::default(), &|| true).await };
        upkeep().await;
        assert_eq!(world.keys("t").await.len(), 1, "not due yet");
        world.clock.advance(HOUR);
        let done = upkeep().await;
        assert_eq!((done.deleted.len(), done.deleted[0].objects), (1, 1));
        check(&world, "looked twice").await;
        let lists = format!("list {}", world.id("t").objects_prefix());
        let looks = async || {
            world.trouble.take();
            upkeep().await;
            world.trouble.take().contains(&lists)
        };
        assert!(!looks().await, "for the time being that is enough");
        world.orphan("t", 'c').await;
        world.clock.advance(7 * 24 * HOUR);
        let done = upkeep().await;
        assert_eq!((done.deleted.len(), done.deleted[0].objects), (1, 1), "of one that was frozen for days");
        assert_eq!(world.keys("t").await, Vec::<String>::new());
        world.clock.advance(70 * 24 * HOUR);
        assert!(!looks().await, "and that is all");
    });
}
