//! The description of the interface, and the form of every refusal.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::client::Ask;
use super::site::{Site, input};

const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// The documented operations: path and method, with the statuses of their answers.
fn operations(site: &Site) -> BTreeMap<(String, String), Vec<String>> {
    let described = site.get("/v1/openapi.json").ok();
    assert!(described["openapi"].as_str().is_some_and(|version| version.starts_with("3.")), "{described}");
    let mut found = BTreeMap::new();
    for (path, methods) in described["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let statuses = operation["responses"].as_object().expect("responses").keys().cloned().collect();
            found.insert((path.clone(), method.to_uppercase()), statuses);
        }
    }
    found
}

#[test]
fn what_is_described_is_what_there_is() {
    let site = Site::new();
    let operations = operations(&site);
    let paths: Vec<&String> = operations.keys().map(|(path, _)| path).collect();
    for (path, method) in [
        ("/api/chat", "POST"),
        ("/api/chat", "GET"),
        ("/api/chat/active", "GET"),
        ("/api/chat/cancel", "POST"),
        ("/v1/runs", "GET"),
        ("/v1/runs/{id}", "GET"),
        ("/v1/runs/{id}/messages", "GET"),
        ("/v1/runs/{id}/events", "GET"),
        ("/v1/runs/{id}/cancel", "POST"),
        ("/v1/threads/{id}", "GET"),
        ("/v1/threads/{id}/events", "GET"),
        ("/health", "GET"),
        ("/ready", "GET"),
        ("/v1/openapi.json", "GET"),
        ("/v1/reap", "GET"),
        ("/v1/reap", "POST"),
        ("/metrics", "GET"),
    ] {
        assert!(
            operations.contains_key(&(path.to_owned(), method.to_owned())),
            "{method} {path} is not described"
        );
    }
    for path in &paths {
        for method in METHODS {
            let target = path.replace("{id}", "some");
            let answer = site.ask(&Ask::new(method, &target));
            if operations.contains_key(&((*path).clone(), method.to_owned())) {
                assert_ne!(answer.status, 405, "{method} {target}");
            } else {
                assert!(
                    answer.header("allow").is_some_and(|allow| !allow.contains(method)),
                    "{method} {target}"
                );
                assert_eq!(answer.refused(405).0, "method_not_allowed", "{method} {target}");
            }
        }
    }
    for nothing in [
        "/",
        "/api",
        "/api/",
        "/api/chat/",
        "/api/chat/x",
        "/v1",
        "/v1/",
        "/v1/runs/",
        "/v1/runs/a/b",
        "/v2",
        "//",
    ] {
        for method in METHODS {
            let (code, message) = site.ask(&Ask::new(method, nothing)).refused(404);
            assert_eq!(code, "not_found", "{method} {nothing}");
            assert!(message.contains("/v1/openapi.json"), "{message}");
        }
    }
}

#[test]
fn every_operation_answers_as_it_is_described() {
    let site = Site::new();
    site.start("r", "echo hi").whole();
    let (mut asked, mut seen) = (0, std::collections::BTreeSet::new());
    let operations = operations(&site);
    for ((path, method), statuses) in &operations {
        let target = |id: &str| path.replace("{id}", id);
        let (run, thread) = (target("r"), target("thread-r"));
        let mut asks = vec![
            Ask::new(method, &run),
            Ask::new(method, &thread),
            Ask::new(method, &target("nobody")),
            Ask::new(method, &target("%00")),
            Ask::new(method, &format!("{run}?runId=r&offset=-1")),
            Ask::new(method, &format!("{run}?runId=r&offset=bad")),
            Ask::new(method, &format!("{run}?runId=r&offset=0000000000000900")),
            Ask::new(method, &format!("{run}?threadId=thread-r&limit=5")),
            Ask::new(method, &format!("{run}?wait=nonsense&limit=nonsense")),
        ];
        if method == "POST" {
            asks.push(Ask::post(&run, &input("r", "thread-r", "echo hi")));
            asks.push(Ask::post(&run, &input("r", "another", "echo hi")));
            asks.push(Ask::post(&run, &json!({"threadId": "thread-r"})));
            asks.push(Ask::post(&run, &json!({"runId": "nobody"})));
            asks.push(Ask::new("POST", &run).body(vec![b' '; 17 << 20]));
        }
        for ask in asks {
            let mut connection = site.connect();
            // It may answer, and close, before it has read a body that is too large.
            let _ = connection.try_send(&ask);
            let mut answer = connection.answer();
            let status = answer.status.to_string();
            assert!(
                statuses.contains(&status),
                "{method} {path} answers {status}, described are {statuses:?}"
            );
            seen.insert((path.clone(), method.clone(), status));
            asked += 1;
            if path != "/v1/threads/{id}/events" {
                answer.read();
            }
        }
    }
    assert!(asked > 100, "{asked}");
    let successes = seen.iter().filter(|(.., status)| status.starts_with('2'));
    let successful: std::collections::BTreeSet<_> =
        successes.map(|(path, method, _)| (path, method)).collect();
    // A sweep is refused where there is no token; with one, `reaped::served` sees it succeed.
    let answered = operations.keys().filter(|(path, _)| path != "/v1/reap").count();
    assert_eq!(successful.len(), answered, "each has succeeded once: {seen:?}");
}

/// [`super::client::Answer::refused`] checks the form: JSON, `{error: {code, message}}`, and says so in its type.
#[test]
fn every_refusal_has_the_same_form() {
    let site = Site::with("max_body = \"1KiB\"", "");
    for (ask, status, code) in [
        (Ask::get("/nothing"), 404, "not_found"),
        (Ask::get("/v1/runs/nobody"), 404, "run_not_found"),
        (Ask::get("/v1/threads/nobody"), 404, "not_found"),
        (Ask::new("DELETE", "/v1/runs/nobody"), 405, "method_not_allowed"),
        (Ask::new("BREW", "/api/chat"), 405, "method_not_allowed"),
        (Ask::get("/v1/runs/%FF"), 400, "invalid_request"),
        (Ask::get("/v1/runs/%C3%28/messages"), 400, "invalid_request"),
        (Ask::get("/v1/threads/%FF/events"), 400, "invalid_request"),
        (Ask::get("/v1/runs/%00"), 400, "invalid_request"),
        (Ask::get("/v1/runs?limit=x"), 400, "invalid_request"),
        (Ask::get("/v1/runs?limit=1&limit=2"), 400, "invalid_request"),
        (Ask::get("/api/chat?runId=a&runId=b&offset=-1"), 400, "invalid_request"),
        (Ask::get("/api/chat?threadId=t&limit=x"), 400, "invalid_request"),
        (Ask::get("/api/chat/active"), 400, "invalid_request"),
        (Ask::new("POST", "/api/chat").body("no json"), 400, "invalid_request"),
        (Ask::new("POST", "/api/chat").body("x".repeat(2000)), 413, "request_too_large"),
        (Ask::new("POST", "/api/chat/cancel").body("x".repeat(2000)), 413, "request_too_large"),
        (Ask::get("/v1/runs").header("Host", "evil.example"), 403, "forbidden"),
    ] {
        let answer = site.ask(&ask);
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{ask:?}");
        let (got, message) = answer.refused(status);
        assert_eq!(got, code, "{ask:?}: {message}");
    }
    // What is percent-encoded in no valid way is taken as it stands.
    let message = site.get("/v1/runs/%zz").refused(404).1;
    assert!(message.contains("%zz"), "{message}");
    let named: Value = site.get("/v1/runs/nobody").refusal(404);
    assert_eq!(named.as_object().map(|fields| fields.len()), Some(2), "{named}");
}
