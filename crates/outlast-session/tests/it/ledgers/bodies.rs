//! Bodies that are not what a pointer says.

use bytes::Bytes;
use outlast_core::Seq;
use outlast_core::ledger::{Envelope, MAX_BODY_BYTES, Pointer, PointerError, message_id};
use outlast_session::bodies::{BodyError, ResolveError};
use outlast_store::{Ledger, Log};
use serde_json::value::RawValue;

use super::world::{World, large, message, run, run_id};

fn envelope(kind: &str, id: &str, text: &str) -> Envelope {
    let body = RawValue::from_string(serde_json::to_string(text).unwrap()).unwrap();
    Envelope { kind: kind.to_owned(), skip: false, id: id.to_owned(), salt: None, body }
}

/// Why the body cannot be had.
async fn refused(world: &World, pointer: &Pointer) -> PointerError {
    match world.sessions.bodies().get(&world.id("t"), pointer, "message", "one").await {
        Err(BodyError::Pointer(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn is_damaged(error: &PointerError, said: &str) -> bool {
    matches!(error, PointerError::Damaged { what, .. } if what.contains(said))
}

#[test]
fn a_body_comes_back_as_it_was_put() {
    run(async {
        let world = World::new();
        let (bodies, session) = (world.sessions.bodies(), world.id("t"));
        let put = bodies.put(&session, &envelope("message", "one", "text")).await.unwrap();
        let got = bodies.get(&session, &put, "message", "one").await.unwrap();
        assert_eq!(got.body.get(), "\"text\"");
        assert!(put.key.starts_with(&session.blobs_prefix()), "{put:?}");
        let again = bodies.put(&session, &envelope("message", "one", "text")).await.unwrap();
        assert_eq!(again, put, "the same body is the same object");
        let salted = Envelope { salt: Some("s".to_owned()), ..envelope("message", "one", "text") };
        let other = bodies.put(&session, &salted).await.unwrap();
        assert_ne!(other.key, put.key);
        assert_eq!(salted.sum(), envelope("message", "one", "text").sum(), "the record is the same");
    });
}

#[test]
fn each_damage_has_its_name() {
    run(async {
        let world = World::new();
        let (bodies, session) = (world.sessions.bodies(), world.id("t"));
        let put = bodies.put(&session, &envelope("message", "one", "text")).await.unwrap();
        let body = world.bucket.get(&put.key, 1 << 20).await.unwrap();

        world.bucket.put(&put.key, body.slice(..body.len() - 3)).await.unwrap();
        assert!(is_damaged(&refused(&world, &put).await, "bytes of"), "truncated");
        world.bucket.put(&put.key, [&body[..], b" "].concat().into()).await.unwrap();
        assert!(is_damaged(&refused(&world, &put).await, "more than"), "grown");
        let changed: Bytes = body.iter().map(|byte| if *byte == b'x' { b'y' } else { *byte }).collect();
        world.bucket.put(&put.key, changed).await.unwrap();
        assert!(is_damaged(&refused(&world, &put).await, "digest"), "changed");
        world.bucket.delete(&put.key).await.unwrap();
        assert!(matches!(refused(&world, &put).await, PointerError::Missing { .. }));

        let id = bodies.put(&session, &envelope("message", "two", "text")).await.unwrap();
        assert!(is_damaged(&refused(&world, &id).await, "\"two\""), "another id");
        let kind = bodies.put(&session, &envelope("event", "one", "text")).await.unwrap();
        assert!(is_damaged(&refused(&world, &kind).await, "event"), "another kind");
        let nested = bodies.put(&session, &envelope("pointer", "one", "text")).await.unwrap();
        assert!(matches!(refused(&world, &nested).await, PointerError::Nested { .. }));
    });
}

#[test]
fn nothing_is_fetched_for_a_pointer_that_may_not_be_followed() {
    run(async {
        let world = World::new();
        let (bodies, session) = (world.sessions.bodies(), world.id("t"));
        let put = bodies.put(&session, &envelope("message", "one", "text")).await.unwrap();
        let elsewhere = bodies.put(&world.id("other"), &envelope("message", "one", "text")).await.unwrap();
        world.trouble.take();

        let outside = |error| matches!(error, PointerError::OutsideSession { .. });
        assert!(outside(refused(&world, &elsewhere).await));
        for key in [
            format!("{}/../x", session.blobs_prefix()),
            format!("{}/a/b", session.blobs_prefix()),
            "x".into(),
        ] {
            assert!(outside(refused(&world, &Pointer { key, size: 1 }).await));
        }
        let name = Pointer { key: put.key[..put.key.len() - 1].to_owned(), size: put.size };
        assert!(matches!(refused(&world, &name).await, PointerError::NoDigest { .. }));
        let large = Pointer { size: MAX_BODY_BYTES as u64 + 1, ..put };
        assert!(matches!(refused(&world, &large).await, PointerError::TooLarge { .. }));
        assert_eq!(world.trouble.take(), Vec::<String>::new());
    });
}

#[test]
fn storage_that_is_away_is_no_damage() {
    run(async {
        let world = World::new();
        let bodies = world.sessions.bodies();
        let put = bodies.put(&world.id("t"), &envelope("message", "one", "text")).await.unwrap();
        world.trouble.fail_on("get");
        let got = bodies.get(&world.id("t"), &put, "message", "one").await;
        assert!(matches!(got, Err(BodyError::Objects(_))), "{got:?}");
    });
}

#[test]
fn a_page_shows_what_stands_for_a_missing_body() {
    run(async {
        let world = World::new();
        world.turn("t", "r").await;
        let (session, id) = (world.id("t"), run_id("r"));
        let page = || async {
            world.store.read(&world.tenant, &id, Seq::START, usize::MAX, usize::MAX).await.unwrap()
        };
        let stub = page().await.events[1].clone();
        let pointer = stub.pointer.clone().unwrap();
        let bodies = world.sessions.bodies();

        let whole = bodies.resolve_page(&session, &id, page().await, usize::MAX).await;
        assert!(whole.missing.is_empty(), "{:?}", whole.missing);
        assert!(whole.value.events[1].json.contains(&large("event ")));
        let cut = bodies.resolve_page(&session, &id, page().await, 10).await;
        assert_eq!(cut.value.events.len(), 1, "no more than fits, and one at least");

        world.bucket.delete(&pointer.key).await.unwrap();
        let shown = bodies.resolve_page(&session, &id, page().await, usize::MAX).await;
        assert_eq!(shown.value.events.len(), 3);
        assert_eq!(shown.value.events[1].json, stub.json);
        assert!(stub.json.contains("bytes are missing"), "{}", stub.json);
        let [missing] = &shown.missing[..] else { panic!("{:?}", shown.missing) };
        assert_eq!(missing.id, "event/r/2");
        assert!(matches!(missing.error, BodyError::Pointer(PointerError::Missing { .. })));
    });
}

#[test]
fn messages_show_what_stands_for_a_missing_body() {
    run(async {
        let world = World::new();
        world.turn("t", "r").await;
        let session = world.id("t");
        let rows = || async { world.store.run_messages(&world.tenant, &run_id("r")).await.unwrap() };
        let bodies = world.sessions.bodies();
        let whole = bodies.resolve_messages(&session, rows().await).await;
        assert!(whole.missing.is_empty(), "{:?}", whole.missing);
        assert_eq!(whole.value[1].message.content, Some(large("answer ")));

        let pointer = rows().await[1].pointer.clone().unwrap();
        world.bucket.delete(&pointer.key).await.unwrap();
        let shown = bodies.resolve_messages(&session, rows().await).await;
        assert_eq!(shown.value, rows().await);
        let said = shown.value[1].message.content.clone().unwrap();
        assert!(said.starts_with("answer ") && said.contains("bytes are missing"), "{said}");
        assert_eq!(shown.missing.len(), 1);
        assert_eq!(shown.missing[0].id, message_id(&run_id("r"), 2));
    });
}

#[test]
fn a_record_is_not_read_without_its_body() {
    run(async {
        let world = World::new();
        world.add("t", vec![message("w", 1, &large("one ")), message("w", 2, "small")]).await;
        let records = world.read("t").await;
        let (session, bodies) = (world.id("t"), world.sessions.bodies());
        for (record, expected) in
            records.iter().zip([message("w", 1, &large("one ")), message("w", 2, "small")])
        {
            assert_eq!(bodies.resolve_record(&session, record).await.unwrap(), Some(expected.record));
        }
        let mut damaged = records[1].clone();
        damaged.body = damaged.body.replace("small", "other");
        let read = bodies.resolve_record(&session, &damaged).await;
        assert!(matches!(read, Err(ResolveError::Damaged { seq: 2, .. })), "{read:?}");
        let mut another = records[0].clone();
        another.sum.clone_from(&records[1].sum);
        let read = bodies.resolve_record(&session, &another).await;
        assert!(matches!(read, Err(ResolveError::Damaged { seq: 1, .. })), "{read:?}");
        world.bucket.delete(&records[0].pointer.as_ref().unwrap().key).await.unwrap();
        let read = bodies.resolve_record(&session, &records[0]).await;
        assert!(matches!(read, Err(ResolveError::Body(_))), "{read:?}");
    });
}

#[test]
fn nothing_is_put_into_a_session_that_was_deleted() {
    run(async {
        let world = World::new();
        world.add("t", vec![message("w", 1, "small")]).await;
        let name = outlast_store::SessionName::Id(world.id("t"));
        world.sessions.delete(&world.tenant, &name, None).await.unwrap();
        world.trouble.take();
        let late = world.records("t", vec![message("w", 2, &large("late "))]);
        let refused = world.sessions.append(late).await.unwrap_err().to_string();
        assert!(refused.contains("was deleted"), "{refused}");
        assert!(!world.trouble.take().iter().any(|done| done.starts_with("put")));
    });
}
