//! How much a server takes on.

use serde_json::json;

use super::client::{Ask, Stream};
use super::site::{Site, gated, input};
use crate::support::eventually;

#[test]
fn bodies() {
    let site = Site::with("max_body = \"64KiB\"", "");
    let body = |size: usize| {
        let text = input("r", "t", "").to_string();
        input("r", "t", &format!("echo hi #{}", "x".repeat(size - text.len() - 9))).to_string()
    };
    for target in ["/api/chat", "/api/chat/cancel"] {
        for size in [64 * 1024 + 1, 8 << 20] {
            let whole = Ask::new("POST", target).body(body(size));
            let chunks = format!("{:x}\r\n{}\r\n0\r\n\r\n", size, body(size));
            let chunked = Ask::new("POST", target).header("Transfer-Encoding", "chunked").body(chunks);
            for ask in [whole, chunked] {
                let mut connection = site.connect();
                // It may answer, and close, before it has read everything.
                let _ = connection.try_send(&ask);
                let (code, message) = connection.answer().refused(413);
                assert_eq!(code, "request_too_large");
                assert!(message.contains("65536"), "{message}");
            }
        }
    }
    assert_eq!(site.get("/v1/runs").ok()["runs"], json!([]));
    let largest = body(64 * 1024);
    assert_eq!(largest.len(), 64 * 1024);
    Stream::of(site.ask(&Ask::new("POST", "/api/chat").body(largest))).whole();
    let chunks = body(64 * 1024 - 100);
    let chunks = format!("{:x}\r\n{chunks}\r\n0\r\n\r\n", chunks.len());
    let chunked = Ask::new("POST", "/api/chat?runId=s").header("Transfer-Encoding", "chunked").body(chunks);
    Stream::of(site.ask(&chunked)).whole();
}

#[test]
fn live_runs() {
    let site = Site::with("max_runs = 2", "");
    let body = input("a", "thread-a", &gated(5));
    let mut live = [Stream::of(site.post("/api/chat", &body)), site.start("b", &gated(5))];
    live.iter_mut().for_each(|stream| drop(stream.wait_for("line 2")));
    let third = || site.post("/api/chat", &input("c", "thread-c", "echo hi"));
    let refused = third();
    assert!(
        refused.header("retry-after").is_some_and(|after| after.parse::<u32>().is_ok_and(|after| after > 0))
    );
    let (code, message) = refused.refused(429);
    assert_eq!(code, "too_many_runs");
    assert!(message.contains('2'), "{message}");
    assert_eq!(site.get("/v1/runs/c").status, 404, "nothing was recorded");
    // What is there already is no new run.
    let mut again = Stream::of(site.post("/api/chat", &body));
    again.wait_for("line 2");
    site.join("b", "-1").wait_for("line 2");
    site.bench.open_gate();
    for stream in live {
        stream.whole();
    }
    let third = eventually("there is room", || Some(third()).filter(|answer| answer.status != 429));
    Stream::of(third).whole();
    site.bench.check_ended("c");
}

#[test]
fn streams() {
    let site = Site::with("max_viewers = 3", "");
    let body = input("r", "t", &gated(5));
    let mut viewers = vec![Stream::of(site.post("/api/chat", &body)), site.join("r", "-1"), site.native("r")];
    viewers.iter_mut().for_each(|stream| drop(stream.wait_for("line 2")));
    let more = || {
        [
            Ask::post("/api/chat", &input("s", "s", "echo hi")),
            Ask::post("/api/chat", &body),
            Ask::get("/api/chat?runId=r&offset=-1"),
            Ask::get("/v1/runs/r/events"),
            Ask::get("/v1/threads/t/events"),
        ]
    };
    for ask in more() {
        let answer = site.ask(&ask);
        assert!(answer.header("retry-after").is_some(), "{ask:?}");
        let (code, message) = answer.refused(503);
        assert_eq!(code, "unavailable", "{ask:?}");
        assert!(message.contains('3'), "{message}");
    }
    assert_eq!(site.get("/v1/runs/s").status, 404, "nothing was started");
    assert_eq!(site.get("/api/chat?threadId=t").status, 200, "what is no stream needs no place");
    viewers.pop();
    let mut back = eventually("a place is free", || {
        let answer = site.get("/api/chat?runId=r&offset=-1");
        (answer.status == 200).then(|| Stream::of(answer))
    });
    back.wait_for("line 2");
    site.bench.open_gate();
    viewers.push(back);
    for stream in viewers {
        site.check_all("r", &stream.whole());
    }
    for ask in more() {
        assert_eq!(site.ask(&ask).status, 200, "{ask:?}: all places are free again");
    }
}
