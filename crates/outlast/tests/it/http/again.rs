//! The same request again, and another under the same name.

use serde_json::{Value, json};

use super::client::{Ask, End, Event, Stream};
use super::site::{Site, config_file, gated, input};

#[test]
fn the_same_request_again_starts_nothing_and_replays() {
    let site = Site::new();
    let body = input("r", "t", &gated(20));
    let mut first = Stream::of(site.post("/api/chat", &body));
    first.wait_for("line 2");
    let mut again = Stream::of(site.post("/api/chat", &body));
    again.wait_for("line 2");
    assert_eq!(again.events(), first.events(), "from the start");
    site.bench.open_gate();
    let events = first.whole();
    assert_eq!(again.whole(), events);
    site.check_all("r", &events);
    // Also once it has ended, and wherever the run id stands.
    let mut elsewhere = body.clone();
    elsewhere.as_object_mut().expect("object").remove("runId");
    for ask in [Ask::post("/api/chat", &body), Ask::post("/api/chat", &elsewhere).header("X-Run-Id", "r")] {
        assert_eq!(Stream::of(site.ask(&ask)).whole(), events);
    }
    assert_eq!(site.bench.starts(), 1, "one agent");
    assert_eq!(site.run("r")["driverEpoch"], 1);
}

#[test]
fn with_a_last_event_id_exactly_what_follows_it() {
    let site = Site::new();
    let body = input("r", "t", &gated(10));
    let mut first = Stream::of(site.post("/api/chat", &body));
    let seen = first.wait_for("line 1");
    let resume = |id: &str| Stream::of(site.ask(&Ask::post("/api/chat", &body).header("Last-Event-ID", id)));
    let mut resumed = resume(&seen.id);
    resumed.wait_for("line 2");
    site.bench.open_gate();
    let all = first.whole();
    let after = |id: &str| -> Vec<Event> {
        let at = all.iter().position(|event| event.id == id).expect("an event's id");
        all[at + 1..].to_vec()
    };
    assert_eq!(resumed.whole(), after(&seen.id), "of a live run");
    for event in &all {
        assert_eq!(resume(&event.id).whole(), after(&event.id), "after {}", event.id);
    }
    assert_eq!(resume("-1").whole(), all);
    assert_eq!(resume("now").whole(), []);
    assert_eq!(site.bench.starts(), 1);
}

#[test]
fn many_at_once_make_one_run_and_get_all_of_it() {
    // Nobody can wait for the end of a lease.
    let site = Site::with_lease("300s", "", "");
    for round in 0..10 {
        let run = format!("r{round}");
        let body = input(&run, "t", "echo start >> starts; echo hi");
        let streams: Vec<Vec<Event>> = std::thread::scope(|scope| {
            let post = || Stream::of(site.post("/api/chat", &body)).whole();
            let all: Vec<_> = (0..16).map(|_| scope.spawn(post)).collect();
            all.into_iter().map(|one| one.join().expect("a stream")).collect()
        });
        site.check_all(&run, &streams[0]);
        assert!(streams.iter().all(|events| *events == streams[0]));
        assert_eq!(site.bench.starts(), round + 1);
        assert_eq!(site.run(&run)["driverEpoch"], 1);
    }
    assert_eq!(site.get("/v1/runs").ok()["runs"].as_array().map(Vec::len), Some(10));
}

#[test]
fn another_request_under_the_same_run_id_is_a_conflict() {
    let site = Site::new();
    let body = input("r", "t", &gated(5));
    let mut live = Stream::of(site.post("/api/chat", &body));
    live.wait_for("line 2");
    let changed = |path: &str, value: Value| {
        let mut other = body.clone();
        *other.pointer_mut(path).expect("a field") = value;
        other
    };
    let others = || {
        [
            changed("/messages/0/content", json!("something else")),
            changed("/messages/0/id", json!("another id")),
            changed("/threadId", json!("another thread")),
            changed("/state", json!({"a": 1})),
            changed("/tools", json!([{"name": "x"}])),
            changed("/context", json!([{"description": "x", "value": "y"}])),
            changed("/forwardedProps", json!({"agent": "demo"})),
            changed("/forwardedProps", json!({"own": 1})),
        ]
    };
    let check = |when: &str| {
        for other in others() {
            for header in [None, Some("-1"), Some("0000000000000001")] {
                let mut ask = Ask::post("/api/chat", &other);
                if let Some(id) = header {
                    ask = ask.header("Last-Event-ID", id);
                }
                let error = site.ask(&ask).refusal(409);
                assert_eq!(error["code"], "run_id_conflict", "{when}: {other}");
                assert_eq!(error["runId"], "r", "{when}: {error}");
            }
        }
    };
    check("while it lives");
    site.bench.open_gate();
    live.whole();
    check("once it has ended");
    assert_eq!(site.bench.starts(), 1);
}

#[test]
fn a_thread_with_a_live_run_is_busy_and_says_with_which() {
    let site = Site::new();
    let mut first = Stream::of(site.post("/api/chat", &input("first", "t", &gated(5))));
    first.wait_for("line 2");
    let error = site.post("/api/chat", &input("second", "t", "echo no")).refusal(409);
    assert_eq!((&error["code"], &error["runId"]), (&json!("thread_busy"), &json!("first")), "{error}");
    assert_eq!(site.get("/v1/runs/second").refused(404).0, "run_not_found", "nothing was recorded");
    site.bench.open_gate();
    first.whole();
    Stream::of(site.post("/api/chat", &input("second", "t", "echo yes"))).whole();
    site.bench.check_ended("second");
}

/// A reconnect of a client whose run is not here must not become a new run.
#[test]
fn to_go_on_with_a_run_that_is_not_there_starts_nothing() {
    let site = Site::new();
    for id in ["0000000000000003", "-1", "now"] {
        let ask =
            Ask::post("/api/chat", &input("r", "t", "echo start >> starts")).header("Last-Event-ID", id);
        let (code, message) = site.ask(&ask).refused(404);
        assert_eq!(code, "run_not_found", "{id}");
        assert!(message.contains("\"r\""), "{message}");
    }
    let malformed = Ask::post("/api/chat", &input("r", "t", "true")).header("Last-Event-ID", "e1");
    assert_eq!(site.ask(&malformed).refused(400).0, "offset_malformed");
    assert_eq!(site.get("/v1/runs/r").status, 404);
    assert_eq!(site.bench.starts(), 0);
}

#[test]
fn an_offset_beyond_the_tail_is_refused_and_harms_nothing() {
    let site = Site::new();
    let body = input("r", "t", &gated(5));
    let mut live = Stream::of(site.post("/api/chat", &body));
    live.wait_for("line 2");
    let ask = Ask::post("/api/chat", &body).header("Last-Event-ID", "0000000000000900");
    assert_eq!(site.ask(&ask).refused(416).0, "offset_ahead");
    site.bench.open_gate();
    site.check_all("r", &live.whole());
}

#[test]
fn it_is_the_same_request_whatever_became_of_the_agents_definition() {
    let mut site = Site::new();
    let body = input("r", "t", &gated(8));
    let mut first = Stream::of(site.post("/api/chat", &body));
    first.wait_for("line 2");
    let file = config_file(&site.bench);
    let text = std::fs::read_to_string(&file).expect("configuration");
    let changed = text
        .replace(". \\\"$OUTLAST_PROMPT_FILE\\\"", "echo changed")
        .replace("stdin = \"none\"", "pass_env = [\"NOT_SET_HERE\"]");
    let removed = "[driver]\nlease = \"1500ms\"\n";
    assert_ne!(changed, text);
    for config in [changed.as_str(), removed] {
        std::fs::write(&file, config).expect("configuration");
        site.end_and_serve();
        let mut again = Stream::of(site.post("/api/chat", &body));
        again.wait_for("line 2");
        assert_eq!(site.run("r")["status"], "running");
    }
    site.bench.open_gate();
    let events = Stream::of(site.post("/api/chat", &body)).whole();
    site.check_all("r", &events);
    assert_eq!(site.bench.starts(), 1);
    // A first request is another matter.
    let refused = site.post("/api/chat", &input("other", "t", "true")).refused(400);
    assert!(refused.1.contains("forwardedProps.agent"), "{}", refused.1);
    assert_eq!(first.rest(), End::Cut, "with the server that served it");
}
