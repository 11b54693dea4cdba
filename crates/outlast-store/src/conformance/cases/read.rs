//! Reading the log.

use outlast_core::Seq;
use outlast_core::event::{Chunk, EventKind, Origin};

use crate::conformance::world::{Host, World, append, is_terminal, run_id};
use crate::{Append, LogEnd, NewEvent, Page, ReadError};

async fn page(host: &Host, after: u64, events: usize, bytes: usize) -> Page {
    host.store.read(&host.tenant, &run_id("r"), Seq(after), events, bytes).await.expect("read")
}

fn seqs(page: &Page) -> Vec<u64> {
    page.events.iter().map(|event| event.seq.0).collect()
}

/// A page holds so many events, and no further one once it has so many bytes; one at least.
pub async fn pages_end_where_they_should(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    let texts = ["x"; 9];
    a.append(&token, 1, &texts).await.expect("written");
    let size = a.log("r").await[1].json.len();
    let whole = page(&a, 0, 100, usize::MAX).await;
    assert_eq!(seqs(&whole), (1..=10).collect::<Vec<_>>());
    assert_eq!((whole.end, whole.tail), (LogEnd::Open, Seq(10)));
    assert!(!whole.is_last(Seq(0)));
    assert_eq!(seqs(&page(&a, 3, 2, usize::MAX).await), [4, 5]);
    assert_eq!(seqs(&page(&a, 1, 100, 3 * size).await), [2, 3, 4]);
    assert_eq!(seqs(&page(&a, 1, 100, 3 * size + 1).await), [2, 3, 4, 5]);
    assert_eq!(seqs(&page(&a, 1, 100, 1).await), [2]);
    assert_eq!(seqs(&page(&a, 1, 100, 0).await), [2]);
    assert_eq!(seqs(&page(&a, 1, 0, 100).await), [0; 0]);
    assert_eq!(seqs(&page(&a, 10, 100, 100).await), [0; 0]);
    a.complete(&token, 10).await.expect("ended");
    let early = page(&a, 0, 5, usize::MAX).await;
    assert_eq!((early.end, early.tail, early.is_last(Seq(0))), (LogEnd::Closed, Seq(12), false));
    assert!(page(&a, 5, 100, usize::MAX).await.is_last(Seq(5)));
    assert!(page(&a, 12, 100, 100).await.is_last(Seq(12)));
}

/// Every event comes back byte for byte: escapes, odd spacing, all of Unicode, a megabyte.
pub async fn bytes_come_back_as_they_were(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    let large = format!("{{\"type\":\"RAW\",\"event\":\"{}\"}}", "\u{1F980}e".repeat(200_000));
    assert!(large.len() >= 1_000_000);
    let texts = [
        r#"{"type":"RAW","event":"nul \u0000 and \ud83e\udd80 and \/"}"#.to_owned(),
        "{ \"type\" :\t\"RAW\", \"event\" : { \"b\":1.0, \"a\":1e2, \"b\":2 } }".to_owned(),
        "{\"type\":\"RAW\",\"event\":\"\u{0}\u{7f}\u{2028}\u{feff}\u{10ffff}e\u{301}\"}".to_owned(),
        large,
        "{\"type\":\"RAW\",\"event\":''\"--;\u{1F4A5}".to_owned(),
        String::new(),
    ];
    let events: Vec<_> = texts
        .iter()
        .map(|json| NewEvent::new(Origin::Host, Chunk { kind: EventKind::Raw, json: json.clone() }))
        .collect();
    a.store.append(Append { events, ..append(&token, 1, &[]) }).await.expect("written");
    let stored: Vec<_> = page(&a, 1, 100, usize::MAX).await.events.into_iter().map(|e| e.json).collect();
    assert_eq!(stored, texts);
}

/// An offset beyond the tail is told, with the tail; a run that is not there, too.
pub async fn beyond_the_tail(world: World) {
    let a = world.host("a").await;
    a.accept("r", "t").await;
    for offset in [2, 5_000_000_000, u64::MAX] {
        match a.store.read(&a.tenant, &run_id("r"), Seq(offset), 10, 10).await {
            Err(ReadError::OffsetAhead { offset: told, tail }) => {
                assert_eq!((told, tail), (Seq(offset), Seq(1)));
            }
            other => panic!("{other:?}"),
        }
    }
    let missing = a.store.read(&a.tenant, &run_id("none"), Seq(0), 10, 10).await;
    assert!(matches!(missing, Err(ReadError::RunNotFound(id)) if id == run_id("none")));
}

/// A long log is read in pages, each event once and in order, beside the log of another run.
pub async fn ten_thousand_events(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    let other = a.accept("other", "t2").await.token;
    let texts: Vec<String> = (0..10_000).map(|n| format!("event {n}")).collect();
    let (mut tail, mut other_tail) = (1, 1);
    for chunk in texts.chunks(500) {
        let chunk: Vec<&str> = chunk.iter().map(String::as_str).collect();
        tail = a.append(&token, tail, &chunk).await.expect("written").tail.0;
        other_tail = a.append(&other, other_tail, &["noise"]).await.expect("written").tail.0;
    }
    let mut after = 1;
    let mut seen = 0;
    loop {
        let page = page(&a, after, 333, 20_000).await;
        if page.events.is_empty() {
            break;
        }
        for event in page.events {
            after += 1;
            assert_eq!(event.seq, Seq(after));
            assert!(event.json.contains(&format!("\"event {seen}\"")), "{}", event.json);
            seen += 1;
        }
    }
    assert_eq!(seen, 10_000);
}

/// Whoever reads a page that says that the log is closed has its last event in reach: state and events are of one moment.
pub async fn a_closed_log_is_complete(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    for round in 0..20 {
        let run = format!("r{round}");
        let token = a.accept(&run, &run).await.token;
        let reader = {
            let (b, run) = (b.clone(), run.clone());
            tokio::spawn(async move {
                let mut after = Seq::START;
                loop {
                    let page = b.store.read(&b.tenant, &run_id(&run), after, 4, 10_000).await.expect("read");
                    let last = page.is_last(after);
                    let event = page.events.last().cloned();
                    assert!(page.tail >= event.as_ref().map_or(after, |event| event.seq));
                    after = event.as_ref().map_or(after, |event| event.seq);
                    if last {
                        return (after, event);
                    }
                    tokio::task::yield_now().await;
                }
            })
        };
        for tail in 1..9 {
            a.append(&token, tail, &["x"]).await.expect("written");
        }
        a.complete(&token, 9).await.expect("ended");
        let (reached, last) = reader.await.expect("it ends");
        assert_eq!(reached, Seq(11));
        assert!(last.is_some_and(|event| is_terminal(&event)), "the end came with its event");
    }
}

/// A change wakes those who watch the run on the same host; none of before is reported.
pub async fn subscribers_wake(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    let mut signal = a.store.subscribe(&run_id("r"));
    for tail in 1..20 {
        let (store, token) = (a.clone(), token.clone());
        let writing = tokio::spawn(async move { store.append(&token, tail, &["x"]).await });
        while page(&a, tail, 1, 1).await.events.is_empty() {
            signal.changed().await;
        }
        writing.await.expect("it ends").expect("written");
    }
    let mut ended = a.store.subscribe(&run_id("r"));
    a.complete(&token, 20).await.expect("ended");
    ended.changed().await;
}

/// Each event keeps where it came from and when it was stored.
pub async fn origins_and_times(world: World) {
    let a = world.host("a").await;
    let claimed = a.accept("r", "t").await;
    world.pass(std::time::Duration::from_secs(3)).await;
    let event = |origin| NewEvent { origin, ..crate::conformance::world::text_event("x") };
    let origins = [
        Origin::Journal { byte: 0, index: 0 },
        Origin::Host,
        Origin::Journal { byte: 5_000_000_000_000, index: 7 },
    ];
    let events = origins.into_iter().map(event).collect();
    a.store.append(Append { events, ..append(&claimed.token, 1, &[]) }).await.expect("written");
    let log = a.log("r").await;
    assert_eq!(log[1..].iter().map(|event| event.origin).collect::<Vec<_>>(), origins);
    assert_eq!(log[0].at, claimed.run.started_at);
    assert!(log[1..].iter().all(|event| event.at == claimed.run.started_at + 3_000));
}
