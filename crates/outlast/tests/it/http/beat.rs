//! What tells a silent agent from a dead connection.

use std::time::{Duration, Instant};

use serde_json::json;

use super::client::{Item, Stream};
use super::site::Site;
use crate::support::gated_script;

fn silent() -> String {
    gated_script("exit 7")[2].clone()
}

/// Where the items stand that tell of nothing but life.
fn is_beat(item: &Item) -> bool {
    match item {
        Item::Comment(text) => text == ": heartbeat",
        Item::Blank => true,
        Item::Named(name, _) => name == "heartbeat",
        Item::Event(_) => false,
    }
}

fn forms(site: &Site) -> [(&'static str, Stream); 3] {
    [
        ("sse", site.join("r", "-1")),
        ("ndjson", Stream::of(site.get("/api/chat?runId=r&offset=-1&format=ndjson"))),
        ("native", site.native("r")),
    ]
}

#[test]
fn silence_is_broken_by_what_clients_skip() {
    let site = Site::with("heartbeat = \"200ms\"", "");
    let mut first = site.start("r", &silent());
    first.wait_for("RUN_STARTED");
    for (form, mut stream) in forms(&site) {
        for _ in 0..4 {
            stream.find("a heartbeat", |item| is_beat(item).then_some(())).expect("a heartbeat");
        }
        assert_eq!(stream.events(), first.events(), "{form}");
        let tail = first.events().pop().expect("an event").id;
        let first_silence =
            stream.items.iter().position(|item| !matches!(item, Item::Event(_) | Item::Named(..)));
        match form {
            "sse" => {
                let marker = Item::Comment(format!(": caught-up {tail}"));
                assert_eq!(stream.items[first_silence.expect("a comment")], marker);
            }
            "ndjson" => {
                assert_eq!(first_silence, Some(first.events().len()), "directly after what is stored")
            }
            _ => {
                assert_eq!(first_silence, None, "everything has a name");
                let beat = stream.items.iter().rev().find(|item| is_beat(item)).expect("a heartbeat");
                let Item::Named(_, data) = beat else { panic!("{beat:?}") };
                assert_eq!((&data["offset"], &data["status"]), (&json!(tail), &json!("running")), "{data}");
                assert!(data["at"].as_u64().is_some_and(|at| at > 1_600_000_000_000), "{data}");
            }
        }
    }
    site.bench.open_gate();
    first.whole();
}

#[test]
fn that_everything_stored_was_sent_is_told_once_and_at_once() {
    let site = Site::with("heartbeat = \"200ms\"", "");
    let mut first = site.start("r", &super::site::gated(8));
    first.wait_for("line 2");
    let mut streams = forms(&site);
    for (form, stream) in &mut streams {
        // The marker itself, not a heartbeat that looks like it: nothing but what is stored comes before.
        stream.wait_until_caught_up();
        assert_eq!(stream.events(), first.events(), "{form}: the whole prefix, and the agent is silent");
        stream.find("a heartbeat", |item| is_beat(item).then_some(())).expect("a heartbeat");
    }
    site.bench.open_gate();
    for (form, mut stream) in streams {
        stream.rest();
        let markers = stream.items.iter().filter(|item| item.is_caught_up()).count();
        if form != "ndjson" {
            assert_eq!(markers, 1, "{form}: {:?}", stream.items);
        }
    }
    first.whole();
    for (form, mut stream) in forms(&site) {
        stream.rest();
        assert!(!stream.items.iter().any(Item::is_caught_up), "{form}: nothing follows an ended run's log");
    }
}

/// Takes as long as the default.
#[test]
#[allow(clippy::disallowed_methods, reason = "tests run on real time")]
fn unless_it_is_said_nothing_is_silent_for_longer_than_fifteen_seconds() {
    let site = Site::new();
    let mut first = site.start("r", &silent());
    first.wait_for("RUN_STARTED");
    let streams: Vec<(&str, Stream)> =
        forms(&site).into_iter().chain([("thread", Stream::of(site.get("/v1/threads/t/events")))]).collect();
    std::thread::scope(|scope| {
        for (form, mut stream) in streams {
            scope.spawn(move || {
                stream.wait_until_caught_up();
                let since = Instant::now();
                stream.find("a heartbeat", |item| is_beat(item).then_some(())).expect("a heartbeat");
                assert!(since.elapsed() < Duration::from_secs(15), "{form}: {:?}", since.elapsed());
            });
        }
    });
}
