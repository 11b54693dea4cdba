//! Where a run's id may stand, and which ids there may be.

use serde_json::{Value, json};

use super::client::{Ask, Stream, percent};
use super::site::{Site, input};

fn without_run_id(thread: &str) -> Value {
    let mut body = input("x", thread, "echo hi");
    body.as_object_mut().expect("object").remove("runId");
    body
}

#[test]
fn the_header_wins_over_the_url_and_the_url_over_the_body() {
    let site = Site::new();
    let body = |n: u32| input(&format!("body-{n}"), &format!("t{n}"), "echo hi");
    for (n, ask, expected) in [
        (1, Ask::post("/api/chat?runId=url-1", &body(1)).header("X-Run-Id", "header-1"), "header-1"),
        (2, Ask::post("/api/chat?runId=url-2", &body(2)), "url-2"),
        (3, Ask::post("/api/chat", &body(3)), "body-3"),
        (4, Ask::post("/api/chat", &without_run_id("t4")).header("X-Run-Id", "header-4"), "header-4"),
        (5, Ask::post("/api/chat?runId=url-5", &without_run_id("t5")), "url-5"),
        (6, Ask::post("/api/chat?runId=", &body(6)).header("X-Run-Id", ""), "body-6"),
    ] {
        Stream::of(site.ask(&ask)).whole();
        let thread = site.get(&format!("/v1/threads/t{n}")).ok();
        assert_eq!(thread["runs"][0]["runId"], expected, "{ask:?}");
        assert_eq!(thread["runs"].as_array().map(Vec::len), Some(1));
    }
    // The same for those who come back, and for those who stop.
    let joined = Ask::get("/api/chat?runId=nobody&offset=-1").header("X-Run-Id", "url-2");
    Stream::of(site.ask(&joined)).whole();
    let other = Ask::get("/api/chat?runId=url-2&offset=-1").header("X-Run-Id", "nobody");
    assert_eq!(site.ask(&other).refused(404).0, "run_not_found");
    let stop = |ask: Ask| site.ask(&ask).status;
    assert_eq!(
        stop(Ask::post("/api/chat/cancel", &json!({"runId": "nobody"})).header("X-Run-Id", "url-2")),
        204
    );
    assert_eq!(stop(Ask::post("/api/chat/cancel?runId=url-2", &json!({"runId": "nobody"}))), 204);
    assert_eq!(stop(Ask::post("/api/chat/cancel?runId=nobody", &json!({"runId": "url-2"}))), 404);
}

#[test]
fn where_no_run_is_named_the_three_ways_to_name_it_are() {
    let site = Site::new();
    let asks = [
        Ask::post("/api/chat", &without_run_id("t")),
        Ask::get("/api/chat?offset=-1"),
        Ask::get("/api/chat"),
        Ask::get("/api/chat?runId=&offset=-1"),
    ];
    for ask in asks {
        let (code, message) = site.ask(&ask).refused(400);
        assert_eq!(code, "run_id_required", "{ask:?}");
        for way in ["X-Run-Id", "?runId", "body"] {
            assert!(message.contains(way), "{ask:?}: {message}");
        }
    }
    assert_eq!(site.get("/v1/runs").ok()["runs"], json!([]), "the server mints none");
}

/// Ids that people try.
const ODD: &[&str] = &[
    "../../x",
    "/",
    "a/b/c",
    ".",
    "..",
    "a?b#c",
    "a&b=c",
    "100%",
    "%2F",
    "a+b",
    "a b",
    "\"quoted\"",
    "it's",
    "🦀",
    "e\u{301}",
    "<script>",
    "{\"a\":1}",
    "null",
    "now",
    "-1",
    "active",
    "cancel",
    "' OR 1=1 --",
    "\u{202e}txt",
];

#[test]
fn odd_runs_and_threads_are_names_and_nothing_else() {
    let site = Site::new();
    for id in ODD {
        let thread = format!("thread of {id}");
        let events =
            Stream::of(site.post("/api/chat", &input(id, &thread, "printf %s \"$OUTLAST_RUN_ID\""))).whole();
        let said: Vec<Value> =
            events.iter().map(|event| serde_json::from_str(&event.json).expect("json")).collect();
        assert!(said.iter().any(|event| event["delta"] == *id), "{id}: {said:?}");
        assert_eq!(site.run(id)["threadId"], thread, "{id}");
        assert_eq!(site.join(id, "-1").whole(), events, "{id}");
        assert_eq!(site.native(id).whole(), events, "{id}");
        let by_header = Ask::get("/api/chat?offset=-1").header("X-Run-Id", id);
        assert_eq!(Stream::of(site.ask(&by_header)).whole(), events, "{id}");
        let messages = site.get(&format!("/v1/runs/{}/messages", percent(id))).ok();
        assert_eq!(messages["messages"][1]["content"], *id);
        let opened = site.get(&format!("/api/chat?threadId={}", percent(&thread))).ok();
        assert_eq!(opened["messages"][1]["parts"][0]["content"], *id);
        let shown = site.get(&format!("/v1/threads/{}", percent(&thread))).ok();
        assert_eq!(shown["runs"][0]["runId"], *id);
        let cancelled = site.ask(&Ask::new("POST", &format!("/v1/runs/{}/cancel", percent(id)))).ok();
        assert_eq!(cancelled["status"], "completed", "{id}");
    }
    let listed = site.get("/v1/runs?limit=500").ok();
    assert_eq!(listed["runs"].as_array().map(Vec::len), Some(ODD.len()));
}

#[test]
fn ids_that_are_refused_say_why() {
    let site = Site::new();
    let long = "x".repeat(10_000);
    let nearly = "x".repeat(151);
    for (id, says) in [
        ("a\nb", "control"),
        ("a\r\nb", "control"),
        ("\u{0}", "control"),
        ("\u{1b}[2J", "control"),
        ("a\u{85}b", "control"),
        (long.as_str(), "too long"),
        (nearly.as_str(), "too long"),
    ] {
        let encoded = percent(id);
        let mut refused = vec![
            site.post("/api/chat", &input(id, "t", "true")),
            site.get(&format!("/api/chat?runId={encoded}&offset=-1")),
            site.post("/api/chat/cancel", &json!({"runId": id})),
            site.get(&format!("/v1/runs/{encoded}")),
            site.get(&format!("/v1/runs/{encoded}/messages")),
            site.get(&format!("/v1/runs/{encoded}/events")),
            site.ask(&Ask::new("POST", &format!("/v1/runs/{encoded}/cancel"))),
        ];
        let long_thread = "t".repeat(1025);
        let thread = if says == "control" { id } else { &long_thread };
        let encoded = percent(thread);
        refused.extend([
            site.post("/api/chat", &input("r", thread, "true")),
            site.get(&format!("/api/chat?threadId={encoded}")),
            site.get(&format!("/api/chat/active?threadId={encoded}")),
            site.post("/api/chat/cancel", &json!({"threadId": thread})),
            site.get(&format!("/v1/threads/{encoded}")),
            site.get(&format!("/v1/threads/{encoded}/events")),
            site.get(&format!("/v1/runs?threadId={encoded}")),
        ]);
        for answer in refused {
            let (code, message) = answer.refused(400);
            assert_eq!(code, "invalid_request", "{id:?}");
            assert!(message.contains(says) && message.len() < 300, "{id:?}: {message}");
        }
    }
    let raw = Ask::post("/api/chat", &input("r", "t", "true")).header("X-Run-Id", b"\xff\xfe");
    let (_, message) = site.ask(&raw).refused(400);
    assert!(message.contains("x-run-id"), "{message}");
    assert_eq!(site.get("/v1/runs").ok()["runs"], json!([]));
}

#[test]
fn the_longest_ids_there_may_be() {
    let site = Site::new();
    let (run, thread) = ("r".repeat(150), "t".repeat(1024));
    let events = Stream::of(site.post("/api/chat", &input(&run, &thread, "echo hi"))).whole();
    assert_eq!(site.join(&run, "-1").whole(), events);
    assert_eq!(site.get(&format!("/v1/threads/{thread}")).ok()["runs"][0]["runId"], run);
}
