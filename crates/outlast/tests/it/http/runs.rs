//! `/v1/runs`: listing and showing.

use serde_json::{Value, json};

use super::client::percent;
use super::site::{Site, gated, input};

fn ids(page: &Value) -> Vec<String> {
    let runs = page["runs"].as_array().expect("runs").iter();
    runs.map(|run| run["runId"].as_str().expect("an id").to_owned()).collect()
}

/// All pages, one after the other.
fn paged(site: &Site, query: &str) -> Vec<String> {
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let page = site.get(&format!("/v1/runs?{query}{after}")).ok();
        let ids = ids(&page);
        found.extend(ids.clone());
        match page["next"].as_str() {
            Some(next) => {
                assert!(!ids.is_empty(), "a page with a next one is full");
                after = format!("&after={}", percent(next));
            }
            None => return found,
        }
        assert!(found.len() < 1000, "no end of pages: {found:?}");
    }
}

#[test]
fn every_run_once_in_pages_of_any_size() {
    let site = Site::new();
    let mut started = Vec::new();
    // Several at once, so that some begin within the same millisecond.
    for round in 0..4 {
        std::thread::scope(|scope| {
            for n in 0..5 {
                let site = &site;
                scope.spawn(move || site.start(&format!("run {round}/{n}"), "exit 0").whole());
            }
        });
        started.extend((0..5).map(|n| format!("run {round}/{n}")));
    }
    let all = ids(&site.get("/v1/runs").ok());
    let mut sorted = all.clone();
    sorted.sort();
    assert_eq!(sorted, started);
    let page = site.get("/v1/runs").ok();
    let times: Vec<u64> = page["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .map(|run| run["startedAt"].as_u64().expect("a time"))
        .collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "newest first: {times:?}");
    for limit in [1, 2, 3, 7, 19, 20, 21, 500] {
        assert_eq!(paged(&site, &format!("limit={limit}")), all, "limit {limit}");
    }
    // Runs that begin while somebody pages are no reason to see another one twice, or not at all.
    let first = site.get("/v1/runs?limit=8").ok();
    site.start("newer", "exit 0").whole();
    let next = percent(first["next"].as_str().expect("a next page"));
    let rest = site.get(&format!("/v1/runs?limit=500&after={next}")).ok();
    assert_eq!([ids(&first), ids(&rest)].concat(), all);
    assert_eq!(rest["next"], Value::Null);
}

#[test]
fn filters() {
    let site = Site::new();
    site.start("completed", "exit 0").whole();
    site.start("failed", "exit 1").whole();
    let mut aborted = site.start("aborted", &gated(5));
    aborted.wait_for("line 2");
    assert_eq!(site.post("/api/chat/cancel", &json!({"runId": "aborted"})).status, 204);
    aborted.whole();
    let mut live = site.start("live", &gated(5));
    live.wait_for("line 2");
    let mut other =
        super::client::Stream::of(site.post("/api/chat", &input("second", "thread-completed", &gated(5))));
    other.wait_for("line 2");
    for (query, expected) in [
        ("", ["second", "live", "aborted", "failed", "completed"].as_slice()),
        ("status=completed", &["completed"]),
        ("status=failed,aborted", &["aborted", "failed"]),
        ("status=failed,%20aborted,", &["aborted", "failed"]),
        ("status=running", &["second", "live"]),
        ("status=live", &["second", "live"]),
        ("status=live,failed", &["second", "live", "failed"]),
        ("status=interrupted", &[]),
        ("threadId=thread-completed", &["second", "completed"]),
        ("threadId=thread-completed&status=completed", &["completed"]),
        ("threadId=nobody", &[]),
    ] {
        let expected: Vec<String> = expected.iter().map(|id| (*id).to_owned()).collect();
        assert_eq!(ids(&site.get(&format!("/v1/runs?{query}")).ok()), expected, "{query}");
        assert_eq!(paged(&site, &format!("{query}&limit=1")), expected, "{query}, one by one");
    }
    for (query, says) in [
        ("limit=0", "1 to 500"),
        ("limit=501", "1 to 500"),
        ("limit=-1", "limit"),
        ("limit=many", "limit"),
        ("status=done", "completed"),
        ("after=nonsense", "next"),
        ("after=", "next"),
        ("thread=t", "thread"),
        ("limit=1&limit=2", "limit"),
        ("threadId=", "empty"),
    ] {
        let (code, message) = site.get(&format!("/v1/runs?{query}")).refused(400);
        assert_eq!(code, "invalid_request", "{query}");
        assert!(message.contains(says), "{query}: {message}");
    }
}

#[test]
fn a_record_is_that_of_the_command_line() {
    let site = Site::new();
    let mut body = input("r", "t", "echo hi; exit 4");
    body["forwardedProps"] = json!({"model": "m", "onDisconnect": "cancel"});
    super::client::Stream::of(site.post("/api/chat", &body)).whole();
    let record = site.run("r");
    assert_eq!(record, site.bench.record("r"));
    for (name, value) in [
        ("threadId", json!("t")),
        ("agent", json!("sh")),
        ("model", json!("m")),
        ("status", json!("failed")),
        ("exitCode", json!(4)),
        ("onDisconnect", json!("cancel")),
        ("sealed", json!(true)),
    ] {
        assert_eq!(record[name], value, "{name} in {record}");
    }
    let messages: Value =
        serde_json::from_str(&site.bench.outlast(["show", "--messages", "--json", "r"]).ok()).expect("json");
    assert_eq!(site.get("/v1/runs/r/messages").ok()["messages"], messages);
    for target in ["/v1/runs/nobody", "/v1/runs/nobody/messages"] {
        assert_eq!(site.get(target).refused(404).0, "run_not_found", "{target}");
    }
}
