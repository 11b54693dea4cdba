//! `/v1/threads/{id}` and `/v1/threads/{id}/events`.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::client::{End, Item, Stream};
use super::site::{Site, gated, input};
use crate::support::gated_agent;

fn told(stream: &mut Stream, name: &str, run: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let what = format!("{name} of {run}");
    let found = stream.find(&what, |item| match item {
        Item::Named(other, data) if other == name && data["runId"] == run && is_so(data) => {
            Some(data.clone())
        }
        _ => None,
    });
    found.unwrap_or_else(|| panic!("ended without {what}: {:?}", stream.items))
}

#[test]
fn a_thread_has_runs_and_messages() {
    let site = Site::new();
    assert_eq!(site.get("/v1/threads/t").refused(404).0, "not_found");
    for run in ["a", "b"] {
        Stream::of(site.post("/api/chat", &input(run, "t", &format!("echo {run}")))).whole();
    }
    let mut live = Stream::of(site.post("/api/chat", &input("c", "t", &gated(8))));
    live.wait_for("line 2");
    let thread = site.get("/v1/threads/t").ok();
    assert_eq!((&thread["threadId"], &thread["activeRun"]["runId"]), (&json!("t"), &json!("c")));
    let runs: Vec<&Value> =
        thread["runs"].as_array().expect("runs").iter().map(|run| &run["runId"]).collect();
    assert_eq!(runs, ["c", "b", "a"], "newest first");
    let ids: Vec<&Value> =
        thread["messages"].as_array().expect("messages").iter().map(|m| &m["id"]).collect();
    assert_eq!((ids[0], ids[2], ids[4]), (&json!("a-said"), &json!("b-said"), &json!("c-said")), "in order");
    site.bench.open_gate();
    live.whole();
    assert_eq!(site.get("/v1/threads/t").ok()["activeRun"], Value::Null);
}

#[test]
fn new_runs_changes_of_driver_and_ends_are_announced_whoever_makes_them() {
    let mut site = Site::with_lease("300s", "", "");
    let other = super::site::serve_on(&site.bench);
    // The thread need not be there yet.
    let mut thread = Stream::of(other.get("/v1/threads/t/events"));
    assert_eq!(thread.next(), Some(Item::Named("caught-up".to_owned(), json!({"threadId": "t"}))));

    let mut first = Stream::of(site.post("/api/chat", &input("by-server", "t", &gated(8))));
    first.wait_for("line 2");
    let new = told(&mut thread, "run", "by-server", |_| true);
    assert_eq!((&new["status"], &new["driverEpoch"]), (&json!("running"), &json!(1)), "{new}");
    site.server.proc.signal(Signal::KILL);
    let next = told(&mut thread, "driver", "by-server", |data| data["driverEpoch"] == 2);
    assert!(next["driver"].is_string() && next["driver"] != new["driver"], "{next}");
    assert_eq!(first.rest(), End::Cut);
    assert_eq!(other.post("/api/chat/cancel", &json!({"threadId": "t"})).status, 204);
    let ended = told(&mut thread, "status", "by-server", |data| data["status"] == "aborted");
    assert_eq!((&ended["driver"], &ended["canCancel"]), (&Value::Null, &json!(false)), "{ended}");

    let agent = gated_agent(3, 8, 7);
    let mut args = site.bench.run_args("by-shell", &[], &agent);
    args[3] = "--thread=t".to_owned();
    let driver = site.bench.spawn(args);
    told(&mut thread, "run", "by-shell", |data| data["status"] == "running");
    // Whoever comes now is told of the live run first.
    let mut late = Stream::of(other.get("/v1/threads/t/events"));
    assert!(
        matches!(late.next(), Some(Item::Named(name, data)) if name == "run" && data["runId"] == "by-shell")
    );
    assert!(matches!(late.next(), Some(Item::Named(name, _)) if name == "caught-up"));
    site.bench.open_gate();
    assert_eq!(driver.finish().code(), 7);
    told(&mut thread, "status", "by-shell", |data| data["status"] == "failed");
    assert_eq!(thread.events(), [], "nothing here has an offset");
    site.server = other;
}
