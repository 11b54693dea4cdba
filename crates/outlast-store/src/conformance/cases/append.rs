//! An append is all or nothing, once.

use outlast_core::Seq;
use outlast_core::run::{Cursor, Phase};
use outlast_core::transcript::Role;
use serde_json::json;

use crate::NewMessage;
use crate::conformance::world::{World, all_at_once, append, run_id, said, terminal_event, text_event};
use crate::{Append, AppendError, StoreError};

fn cursor(journal: u64) -> Cursor {
    Cursor { journal, state: json!({"open": ["m"]}), version: 3, ids: journal + 1, fold_from: 2 }
}

/// A writer that names another tail than there is changes nothing and is told the tail.
pub async fn a_moved_tail_changes_nothing(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    let before = a.snapshot("r").await;
    for tail in [0, 2, 1_000_000] {
        let request = Append {
            cursor: Some(cursor(9)),
            messages: vec![NewMessage::new(1, said("m", Role::Assistant, "no"))],
            agent_session: Some("s".to_owned()),
            ..append(&token, tail, &["no"])
        };
        match a.store.append(request).await {
            Err(AppendError::TailMoved { expected, actual }) => {
                assert_eq!((expected, actual), (Seq(tail), Seq(1)));
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(
            a.store.launched(&token, Seq(tail), vec![text_event("no")]).await,
            Err(AppendError::TailMoved { actual: Seq(1), .. })
        ));
    }
    assert_eq!(a.snapshot("r").await, before);
}

/// The same append again, whose answer was lost, is answered as the first was and adds nothing.
pub async fn a_batch_counts_once(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    let request = Append {
        cursor: Some(cursor(5)),
        messages: vec![NewMessage::new(2, said("m", Role::Assistant, "hello"))],
        ..append(&token, 1, &["x", "y"])
    };
    assert_eq!(a.store.append(request.clone()).await.expect("written").tail, Seq(3));
    let before = a.snapshot("r").await;
    for _ in 0..3 {
        assert_eq!(a.store.append(request.clone()).await.expect("known").tail, Seq(3));
    }
    assert_eq!(a.snapshot("r").await, before);
    a.append(&token, 3, &["z"]).await.expect("written");
    let before = a.snapshot("r").await;
    assert!(matches!(a.store.append(request).await, Err(AppendError::TailMoved { actual: Seq(4), .. })));
    assert_eq!(a.snapshot("r").await, before);
}

/// Of many appends at once from one tail, one lands.
pub async fn racing_from_one_tail(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    for round in 0..10 {
        let tail = 1 + round * 2;
        let answers = all_at_once((0..12).map(|_| {
            let (a, token) = (a.clone(), token.clone());
            async move { a.append(&token, tail, &["x", "y"]).await }
        }))
        .await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
        let told = |answer: &&Result<_, _>| matches!(answer, Err(AppendError::TailMoved { actual, .. }) if actual.0 == tail + 2);
        assert_eq!(answers.iter().filter(told).count(), 11, "{answers:?}");
    }
    assert_eq!(a.log("r").await.len(), 21);
}

/// An append that names no cursor or session leaves them as they were; one that does replaces them.
pub async fn what_is_not_said_stays(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    let first =
        Append { cursor: Some(cursor(5)), agent_session: Some("s1".to_owned()), ..append(&token, 1, &["x"]) };
    a.store.append(first).await.expect("written");
    a.append(&token, 2, &["y"]).await.expect("written");
    let record = a.record("r").await;
    assert_eq!((record.cursor, record.agent_session.as_deref()), (Some(cursor(5)), Some("s1")));
    let second =
        Append { cursor: Some(cursor(7)), agent_session: Some("s2".to_owned()), ..append(&token, 3, &["z"]) };
    a.store.append(second).await.expect("written");
    let record = a.record("r").await;
    assert_eq!((record.cursor, record.agent_session.as_deref()), (Some(cursor(7)), Some("s2")));
}

/// A cursor moves without an event.
pub async fn nothing_but_a_cursor(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    let request = Append { cursor: Some(cursor(5)), ..append(&token, 1, &[]) };
    assert_eq!(a.store.append(request).await.expect("written").tail, Seq(1));
    let record = a.record("r").await;
    assert_eq!((record.cursor, record.tail), (Some(cursor(5)), 1));
}

/// That a run is launched is written once, with its events; again it is only answered.
pub async fn launched_counts_once(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    let events = vec![text_event("launched")];
    assert_eq!(a.store.launched(&token, Seq(1), events.clone()).await.expect("written").tail, Seq(2));
    assert_eq!(a.record("r").await.phase, Phase::Launched);
    a.append(&token, 2, &["x"]).await.expect("written");
    let before = a.snapshot("r").await;
    for tail in [1, 3] {
        let again = a.store.launched(&token, Seq(tail), events.clone()).await;
        assert_eq!(again.expect("known").tail, Seq(3));
    }
    assert_eq!(a.snapshot("r").await, before);
}

/// A log has one terminal event, its last: nothing but `finish` writes it.
pub async fn only_finish_ends_a_log(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    let before = a.snapshot("r").await;
    let request = Append { events: vec![terminal_event()], ..append(&token, 1, &[]) };
    let refused = a.store.append(request).await;
    assert!(matches!(refused, Err(AppendError::Store(StoreError::Unusable { .. }))), "{refused:?}");
    let refused = a.store.launched(&token, Seq(1), vec![terminal_event()]).await;
    assert!(matches!(refused, Err(AppendError::Store(StoreError::Unusable { .. }))), "{refused:?}");
    let request = crate::Accept { events: vec![terminal_event().chunk], ..a.request("r2", "t2") };
    assert!(a.store.accept(request).await.is_err());
    assert_eq!(a.store.run(&a.tenant, &run_id("r2")).await.expect("answered"), None);
    assert_eq!(a.snapshot("r").await, before);
}
