//! What ages out, and what stays.

use std::time::Duration;

use outlast_core::Seq;
use outlast_core::transcript::Role;

use crate::NewMessage;
use crate::conformance::world::{Host, World, run_id, said, thread_id};
use crate::{Accept, LogEnd, Page, ReadError, Swept};

const DAY: Duration = Duration::from_secs(86_400);

/// A run that ended, with so many events besides those of its beginning and end.
async fn ended(host: &Host, run: &str, events: usize) {
    let messages = NewMessage::input(vec![said(&format!("{run}-u"), Role::User, "Hi")]);
    let token = host.accept_with(Accept { messages, ..host.request(run, "t") }).await.token;
    let texts = vec!["x"; events];
    host.append(&token, 1, &texts).await.expect("written");
    host.complete(&token, 1 + events as u64).await.expect("ended");
}

async fn read(host: &Host, run: &str, after: u64) -> Result<Page, ReadError> {
    host.store.read(&host.tenant, &run_id(run), Seq(after), 100, usize::MAX).await
}

/// A run's log goes as a whole, to the millisecond; its record and messages stay, and so does the log of a live run.
pub async fn events_age_out_and_messages_stay(world: World) {
    let a = world.host("a").await;
    ended(&a, "old", 3).await;
    world.pass(Duration::from_millis(1)).await;
    ended(&a, "new", 3).await;
    let live = a.accept("live", "t").await.token;
    world.pass(DAY - Duration::from_millis(2)).await;
    assert_eq!(a.store.expire_events(DAY, 500).await.expect("swept"), Swept::default());
    world.pass(Duration::from_millis(1)).await;
    let counted = a.store.count_expired(DAY).await.expect("counted");
    assert_eq!((counted.runs, counted.rows), (1, 6));
    let before = (
        a.record("old").await,
        a.store.thread_messages(&a.tenant, &thread_id("t"), None, usize::MAX).await.expect("read").messages,
    );
    let swept = a.store.expire_events(DAY, 500).await.expect("swept");
    assert_eq!((swept.runs, swept.rows), (1, 6));
    for after in [0, 3, 6] {
        let page = read(&a, "old", after).await.expect("answered");
        assert_eq!((page.events.len(), page.end, page.tail), (0, LogEnd::Expired, Seq(6)), "{after}");
    }
    assert!(matches!(read(&a, "old", 7).await, Err(ReadError::OffsetAhead { .. })));
    let mut record = a.record("old").await;
    record.cursor.clone_from(&before.0.cursor);
    assert_eq!(record, before.0);
    let messages =
        a.store.thread_messages(&a.tenant, &thread_id("t"), None, usize::MAX).await.expect("read").messages;
    assert_eq!(messages, before.1);
    assert_eq!(a.log("new").await.len(), 6);
    world.pass(DAY).await;
    a.store.expire_events(DAY, 500).await.expect("swept");
    assert_eq!(
        a.store.expire_events(DAY, 500).await.expect("swept"),
        Swept::default(),
        "nothing is left to do"
    );
    assert_eq!(a.log("live").await.len(), 1);
    a.append(&live, 1, &["still writing"]).await.expect("written");
}

/// In steps: at most so many rows each, and what was begun is finished by the next.
pub async fn in_small_steps(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    for run in ["r1", "r2"] {
        ended(&a, run, 7).await;
    }
    world.pass(DAY).await;
    let (mut rows, mut runs, mut steps) = (0, 0, 0);
    loop {
        let host = if steps % 2 == 0 { &a } else { &b };
        let swept = host.store.expire_events(DAY, 4).await.expect("swept");
        assert!(swept.rows <= 4, "{swept:?}");
        rows += swept.rows;
        runs += swept.runs;
        steps += 1;
        assert!(steps < 20);
        if swept.rows == 0 && !swept.more {
            break;
        }
        assert_eq!(
            read(&b, "r1", 0).await.expect("answered").end,
            LogEnd::Expired,
            "as a whole, from the first on"
        );
    }
    assert_eq!((rows, runs), (20, 2));
}
