//! `/v1/runs/{id}/events`: the stream that only reads, and tells what becomes of the run.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Ask, End, Item, Stream};
use super::site::{Site, gated};
use crate::support::{eventually, gated_agent};

fn names(stream: &Stream) -> Vec<String> {
    let name = |item: &Item| match item {
        Item::Named(name, _) => Some(name.clone()),
        _ => None,
    };
    stream.items.iter().filter_map(name).collect()
}

fn statuses(stream: &Stream) -> Vec<Value> {
    let status = |item: &Item| match item {
        Item::Named(name, data) if name == "status" => Some(data.clone()),
        _ => None,
    };
    stream.items.iter().filter_map(status).collect()
}

#[test]
fn the_state_first_then_everything_stored_then_the_marker_then_what_comes() {
    let site = Site::new();
    let mut first = site.start("r", &gated(10));
    first.wait_for("line 2");
    let mut native = site.native("r");
    let marker = native.wait_for_named("caught-up");
    assert_eq!(native.events(), first.events());
    assert_eq!(marker["offset"], native.events().last().expect("an event").id);
    assert_eq!(names(&native), ["status", "caught-up"]);
    let state = &statuses(&native)[0];
    assert_eq!(native.items[0], Item::Named("status".to_owned(), state.clone()), "before anything else");
    for (name, value) in [
        ("runId", json!("r")),
        ("status", json!("running")),
        ("phase", json!("launched")),
        ("canCancel", json!(true)),
        ("cancelRequested", json!(false)),
        ("detachedSince", Value::Null),
        ("driverEpoch", json!(1)),
        ("error", Value::Null),
    ] {
        assert_eq!(state[name], value, "{name} in {state}");
    }
    assert!(state["driver"].is_string(), "{state}");
    site.bench.open_gate();
    let all = first.whole();
    assert_eq!(native.rest(), End::Clean);
    assert_eq!(native.events(), all, "the same events and offsets");
    let last = statuses(&native).pop().expect("a state");
    assert_eq!(
        (&last["status"], &last["canCancel"], &last["driver"]),
        (&json!("failed"), &json!(false), &Value::Null)
    );
    assert_eq!(last["error"]["code"], "agent_failed", "{last}");
    assert!(
        matches!(native.items.last(), Some(Item::Named(name, _)) if name == "status"),
        "the end is told last"
    );
}

#[test]
fn from_an_offset_and_of_an_ended_run() {
    let site = Site::new();
    let all = site.start("r", "echo one; echo two").whole();
    let from = |ask: Ask| Stream::of(site.ask(&ask));
    let url = "/v1/runs/r/events";
    assert_eq!(from(Ask::get(&format!("{url}?offset={}", all[1].id))).whole(), all[2..]);
    assert_eq!(
        from(Ask::get(&format!("{url}?offset=-1")).header("Last-Event-ID", &all[0].id)).whole(),
        all[1..]
    );
    assert_eq!(from(Ask::get(&format!("{url}?offset=now"))).whole(), []);
    let mut ended = from(Ask::get(url));
    assert_eq!(ended.rest(), End::Clean);
    assert_eq!(ended.events(), all);
    assert_eq!(names(&ended), ["status"], "one state, and no marker: nothing follows");
    assert_eq!(statuses(&ended)[0]["status"], "completed");
    assert_eq!(site.get("/v1/runs/nobody/events").refused(404).0, "run_not_found");
}

#[test]
fn what_becomes_of_the_run_is_told_while_its_agent_is_silent() {
    let site = Site::with("heartbeat = \"15s\"", "");
    let mut first = site.start("r", &gated(10));
    first.wait_for("line 2");
    let mut native = site.native("r");
    native.wait_for_named("caught-up");
    site.bench.outlast(["cancel", "r"]).ok();
    let told = native.find("the wish", |item| match item {
        Item::Named(name, data) if name == "status" && data["cancelRequested"] == true => Some(data.clone()),
        _ => None,
    });
    assert_eq!(told.expect("told")["canCancel"], false);
    assert_eq!(native.rest(), End::Clean);
    assert_eq!(statuses(&native).pop().expect("a state")["status"], "aborted");
}

/// A run that nobody drives stays so while it is only read. The server looks for such runs itself, every two seconds; so
/// this has to happen between two looks.
#[test]
#[allow(clippy::disallowed_methods, reason = "tests run on real time")]
fn it_only_reads() {
    let site = Site::with_lease("300s", "", "");
    let start = |run: &str| {
        site.bench
            .outlast(site.bench.run_args(run, &["-d", "--share-workspace"], &gated_agent(3, 9, 7)))
            .ok();
    };
    for attempt in 0..20 {
        let [canary, read, joined] = ["canary", "read", "joined"].map(|name| format!("{name}-{attempt}"));
        start(&canary);
        let looked = site.wait_until(&canary, "found", |record| record["driver"].is_object());
        assert_eq!(looked["driverEpoch"], 2);
        let since = Instant::now();
        start(&read);
        start(&joined);
        let mut native = site.native(&read);
        native.wait_for_named("caught-up");
        let chat = site.join(&joined, "-1");
        site.wait_until(&joined, "taken over", |record| record["driverEpoch"] == 2);
        let record = site.run(&read);
        drop(chat);
        if since.elapsed() < Duration::from_millis(1500) {
            assert_eq!((&record["driver"], &record["driverEpoch"]), (&Value::Null, &json!(1)), "{record}");
            assert_eq!(statuses(&native)[0]["driver"], Value::Null);
            site.bench.open_gate();
            // It is found in the end, and the reader reads on.
            native.wait_for("line 8");
            return;
        }
        eventually("the next look", || (site.run(&read)["driverEpoch"] == 2).then_some(()));
    }
    panic!("this machine is too slow to do anything within two seconds");
}
