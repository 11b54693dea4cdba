//! What goes over the wire: frames, forms, headers, the end.

use serde_json::{Value, json};

use super::client::{Ask, End, Item, Stream, lines};
use super::site::{Site, gated, input};

#[test]
fn the_log_byte_for_byte_in_frames_of_events() {
    let site = Site::new();
    let mut answer =
        site.post("/api/chat", &input("r", "t", "echo 'a \"quoted\" line é🦀'; printf 'no break'; exit 3"));
    let (body, end) = answer.read();
    assert_eq!(end, End::Clean);
    let frames: String = site
        .bench
        .check_ended("r")
        .iter()
        .map(|event| format!("id: {}\ndata: {}\n\n", event.seq.offset(), event.raw))
        .collect();
    let body = String::from_utf8(body).expect("utf-8");
    let (comments, events): (Vec<&str>, Vec<&str>) =
        body.split_inclusive("\n\n").partition(|frame| frame.starts_with(':'));
    assert_eq!(events.concat(), frames);
    assert!(comments.iter().all(|comment| comment.trim_end().lines().count() == 1), "{comments:?}");
    let first: Value = serde_json::from_str(frames.lines().nth(1).expect("data")[6..].trim()).expect("json");
    assert_eq!((&first["type"], &first["name"]), (&json!("CUSTOM"), &json!("run.accepted")));
}

#[test]
fn lines_of_json_for_those_who_ask_for_them() {
    let site = Site::new();
    let body = |run: &str| input(run, run, "echo hi");
    let by_accept = Ask::post("/api/chat", &body("a")).header("Accept", "application/x-ndjson");
    let asked = [
        ("a", by_accept),
        ("b", Ask::post("/api/chat?format=ndjson", &body("b"))),
        ("c", Ask::post("/api/chat?format=ndjson", &body("c")).header("Accept", "text/event-stream")),
    ];
    for (run, ask) in asked {
        let answer = site.ask(&ask);
        assert_eq!(answer.header("content-type"), Some("application/x-ndjson"), "{run}");
        let text = answer.text();
        let events: String = text.split_inclusive('\n').filter(|line| *line != "\n").collect();
        assert_eq!(events, site.stored(run), "{run}");
        let joined = site.get(&format!("/api/chat?runId={run}&offset=-1&format=ndjson"));
        assert_eq!(joined.text(), site.stored(run), "{run}: nothing but events stands in a replay");
    }
    let refused = site.post("/api/chat?format=xml", &body("d")).refused(400);
    assert_eq!(refused.0, "invalid_request");
    assert!(refused.1.contains("ndjson"), "{}", refused.1);
    assert_eq!(site.get("/v1/runs/d").status, 404, "nothing was started");
}

#[test]
fn nothing_on_the_way_may_buffer_change_or_keep_a_stream() {
    let site = Site::new();
    let encodings = "gzip, deflate, br, zstd";
    site.start("r", "exit 0").whole();
    for ask in [
        Ask::post("/api/chat", &input("s", "s", "exit 0")),
        Ask::post("/api/chat?format=ndjson", &input("n", "n", "exit 0")),
        Ask::get("/api/chat?runId=r&offset=-1"),
        Ask::get("/v1/runs/r/events"),
        Ask::get("/v1/threads/t/events"),
    ] {
        let answer = site.ask(&ask.clone().header("Accept-Encoding", encodings));
        assert_eq!(answer.status, 200, "{ask:?}");
        let caching = answer.header("cache-control").expect("cache-control");
        assert!(caching.split(", ").any(|word| word == "no-cache"), "{ask:?}: {caching}");
        assert_eq!(answer.header("x-accel-buffering"), Some("no"), "{ask:?}");
        assert_eq!(answer.header("content-encoding"), None, "{ask:?}");
        assert_eq!(answer.header("content-length"), None, "{ask:?}");
        assert_eq!(answer.header("transfer-encoding"), Some("chunked"), "{ask:?}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{ask:?}");
    }
}

#[test]
fn the_end_comes_after_the_terminal_event_and_not_before() {
    let site = Site::new();
    let mut stream = site.start("r", &gated(20));
    stream.wait_for("line 2");
    assert_eq!(site.run("r")["status"], "running");
    site.bench.open_gate();
    assert_eq!(stream.rest(), End::Clean);
    let last = stream.events().pop().expect("an event");
    assert!(last.json.contains("\"RUN_ERROR\""), "the agent's status is 7: {}", last.json);
    assert_eq!(stream.items.last(), Some(&Item::Event(last)), "nothing comes after it");
    site.check_all("r", &stream.events());
    assert_eq!(site.bench.starts(), 1);
}

#[test]
fn events_come_as_they_happen() {
    let site = Site::new();
    let echo = "i=0; while read -r line; do echo \"$line\"; done < pipe";
    let mut stream = site.start("r", &format!("mkfifo pipe; {echo}"));
    let pipe = site.bench.workspace().join("pipe");
    crate::support::eventually("the pipe", || pipe.exists().then_some(()));
    let mut pipe = std::fs::OpenOptions::new().write(true).open(pipe).expect("open");
    for n in 0..20 {
        std::io::Write::write_all(&mut pipe, format!("line {n}\n").as_bytes()).expect("write");
        stream.wait_for(&format!("line {n}\\n"));
    }
    drop(pipe);
    assert_eq!(stream.rest(), End::Clean);
    site.check_all("r", &stream.events());
}

#[test]
fn a_connection_is_used_again_after_a_stream() {
    let site = Site::new();
    let mut connection = site.connect();
    for run in ["a", "b"] {
        connection.send(&Ask::post("/api/chat", &input(run, "t", "echo hi")));
        let answer = connection.answer();
        assert_eq!(answer.status, 200, "{run}");
        connection = answer.done();
        site.bench.check_ended(run);
    }
    connection.send(&Ask::get("/api/chat?runId=a&offset=-1"));
    assert_eq!(lines(&Stream::of(connection.answer()).whole()), site.stored("a"));
}

#[test]
fn events_of_every_kind_go_on_as_they_are() {
    let site = Site::new();
    let printed = [
        json!({"type": "REASONING_START", "messageId": "q"}),
        json!({"type": "REASONING_MESSAGE_START", "messageId": "q", "role": "reasoning"}),
        json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": "q", "delta": "hm \u{2028} \u{1f980}"}),
        json!({"type": "REASONING_MESSAGE_END", "messageId": "q"}),
        json!({"type": "REASONING_END", "messageId": "q"}),
        json!({"type": "TEXT_MESSAGE_START", "messageId": "a", "role": "assistant"}),
        json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "a", "delta": "two\nlines, \"quoted\""}),
        json!({"type": "TEXT_MESSAGE_END", "messageId": "a"}),
        json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "look"}),
        json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{\"at\":1}"}),
        json!({"type": "TOOL_CALL_END", "toolCallId": "c"}),
        json!({"type": "TOOL_CALL_RESULT", "messageId": "x", "toolCallId": "c", "content": "seen", "role": "tool"}),
        json!({"type": "STATE_SNAPSHOT", "snapshot": {"a": [1, 2.5, null]}}),
        json!({"type": "STEP_STARTED", "stepName": "s"}),
        json!({"type": "STEP_FINISHED", "stepName": "s"}),
        json!({"type": "CUSTOM", "name": "own", "value": {"nested": {"x": true}}}),
        json!({"type": "RAW", "event": {"own": 1}, "source": "agent"}),
    ];
    let usage = json!([{"model": "m", "inputTokens": 3, "outputTokens": 4, "totalTokens": 7}]);
    let last = json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "usage": usage});
    let text: String = printed.iter().chain([&last]).map(|event| format!("{event}\n")).collect();
    let events = site.start("r", &format!("cat <<'END'\n{text}END")).whole();
    let told: Vec<&str> = events.iter().map(|event| event.json.as_str()).collect();
    let printed: Vec<String> = printed.iter().map(Value::to_string).collect();
    assert_eq!(told[2..told.len() - 1], printed);
    let finished: Value = serde_json::from_str(told[told.len() - 1]).expect("json");
    assert_eq!(finished["type"], "RUN_FINISHED");
    assert_eq!(finished["usage"], usage, "{finished}");
    // A failure comes with its code.
    let failure = json!({"type": "RUN_ERROR", "message": "too many", "code": "rate_limited"});
    let events = site.start("s", &format!("echo '{failure}'; exit 1")).whole();
    let error: Value = serde_json::from_str(&events[events.len() - 1].json).expect("json");
    assert_eq!((&error["code"], &error["message"]), (&json!("rate_limited"), &json!("too many")), "{error}");
}
