//! Opening a thread: its messages and its live run.

use serde_json::{Value, json};

use super::client::{Ask, Stream};
use super::site::{Site, gated, input};

/// Prints these events and what the script says.
fn printing(events: &[Value], then: &str) -> String {
    let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
    format!("echo start >> starts\ncat <<'END'\n{lines}END\n{then}")
}

fn open(site: &Site, query: &str) -> Value {
    site.ask(&Ask::get(&format!("/api/chat?{query}")).header("Accept", "application/json")).ok()
}

#[test]
fn a_thread_that_is_not_there_yet_is_empty() {
    let site = Site::new();
    let answer = site.ask(&Ask::get("/api/chat?threadId=t").header("Accept", "application/json"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.ok(), json!({"messages": [], "activeRun": null, "interrupts": null}));
    assert_eq!(site.get("/api/chat/active?threadId=t").ok(), json!({"runId": null}));
    let (code, message) = site.get("/api/chat/active").refused(400);
    assert_eq!(code, "invalid_request");
    assert!(message.contains("threadId"), "{message}");
}

#[test]
fn in_mid_run_and_after() {
    let site = Site::new();
    let told = [
        json!({"type": "TEXT_MESSAGE_START", "messageId": "a1", "role": "assistant"}),
        json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "a1", "delta": "I look."}),
        json!({"type": "TEXT_MESSAGE_END", "messageId": "a1"}),
        json!({"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "look", "parentMessageId": "a1"}),
        json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "{\"at\":1}"}),
        json!({"type": "TOOL_CALL_END", "toolCallId": "c1"}),
        json!({"type": "TOOL_CALL_RESULT", "messageId": "x1", "toolCallId": "c1", "content": "seen"}),
    ];
    let wait = "while [ ! -e gate-is-open ]; do [ -e starts ] || exit 99; sleep 0.02; done; echo done";
    let script = printing(&told, wait);
    let mut stream = Stream::of(site.post("/api/chat", &input("r", "t", &script)));
    stream.wait_for("TOOL_CALL_RESULT");
    let said = json!({"id": "r-said", "role": "user", "parts": [{"type": "text", "content": script}]});
    let parts = json!([
        {"type": "text", "content": "I look."},
        {"type": "tool-call", "id": "c1", "name": "look", "arguments": "{\"at\":1}", "state": "complete",
         "input": {"at": 1}, "output": "seen"},
        {"type": "tool-result", "toolCallId": "c1", "content": "seen", "state": "complete"},
    ]);
    let live = open(&site, "threadId=t");
    assert_eq!(live["messages"][0], said, "the user's own message");
    assert_eq!(live["messages"][1]["parts"], parts);
    assert_eq!(live["messages"].as_array().map(Vec::len), Some(2));
    assert_eq!((&live["activeRun"], &live["interrupts"]), (&json!({"runId": "r"}), &Value::Null));
    assert_eq!(site.get("/api/chat?threadId=t").ok(), live, "without an Accept header too");
    assert_eq!(site.get("/api/chat/active?threadId=t").ok(), json!({"runId": "r"}));
    site.bench.open_gate();
    stream.whole();
    let ended = open(&site, "threadId=t");
    assert_eq!(ended["activeRun"], Value::Null);
    assert_eq!(ended["messages"][0], said);
    assert_eq!(ended["messages"][1]["parts"], parts);
    assert_eq!(ended["messages"][2]["parts"], json!([{"type": "text", "content": "done\n"}]));
    assert_eq!(site.get("/api/chat/active?threadId=t").ok(), json!({"runId": null}));
}

#[test]
fn the_users_message_is_there_before_the_agent_says_anything() {
    let site = Site::new();
    let mut stream = Stream::of(site.post("/api/chat", &input("r", "t", &gated(4))));
    stream.next_event().expect("run.accepted");
    let live = open(&site, "threadId=t");
    assert_eq!(live["messages"][0]["id"], "r-said");
    assert_eq!(live["activeRun"], json!({"runId": "r"}));
    site.bench.open_gate();
    stream.whole();
}

#[test]
fn a_thread_that_the_command_line_began_is_opened_and_gone_on_with() {
    let site = Site::new();
    site.bench.outlast(["run", "--run-id=r", "--thread=t", "--agent=sh", "echo from the shell"]).ok();
    let opened = open(&site, "threadId=t");
    let texts: Vec<&Value> =
        opened["messages"].as_array().expect("messages").iter().map(|m| &m["parts"][0]["content"]).collect();
    assert_eq!(texts, ["echo from the shell", "from the shell\n"]);
    Stream::of(site.post("/api/chat", &input("s", "t", "echo over HTTP"))).whole();
    assert_eq!(open(&site, "threadId=t")["messages"].as_array().map(Vec::len), Some(4));
}

#[test]
fn long_threads_are_opened_in_pages() {
    let site = Site::new();
    for n in 0..3 {
        Stream::of(site.post("/api/chat", &input(&format!("r{n}"), "t", &format!("echo {n}")))).whole();
    }
    let all = open(&site, "threadId=t")["messages"].as_array().expect("messages").clone();
    assert_eq!(all.len(), 6);
    let mut pages: Vec<Vec<Value>> = Vec::new();
    let mut query = "threadId=t&limit=4".to_owned();
    loop {
        let page = open(&site, &query);
        pages.insert(0, page["messages"].as_array().expect("messages").clone());
        if page["page"]["truncated"] == json!(false) {
            break;
        }
        let cursor = page["page"]["cursor"].as_str().expect("a cursor");
        query = format!("threadId=t&limit=4&before={cursor}");
    }
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [2, 4]);
    assert_eq!(pages.concat(), all);
    assert_eq!(site.get("/api/chat?threadId=t&limit=many").refused(400).0, "invalid_request");
}
