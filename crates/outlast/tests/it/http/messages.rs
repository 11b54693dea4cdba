//! What a request says: messages that are merged with the stored ones, and requests that make no sense.

use serde_json::{Value, json};

use super::client::{Ask, Stream};
use super::site::{Site, input};

fn with_messages(run: &str, messages: Value) -> Value {
    let mut body = input(run, "t", "");
    body["messages"] = messages;
    body
}

fn said(id: &str, role: &str, text: &str) -> Value {
    json!({"id": id, "role": role, "content": text})
}

fn stored(site: &Site, of: &str) -> Vec<(String, String, String)> {
    let messages = site.get(of).ok();
    let text = |message: &Value, name: &str| message[name].as_str().unwrap_or_default().to_owned();
    let messages = messages["messages"].as_array().expect("messages").iter();
    messages.map(|m| (text(m, "id"), text(m, "role"), text(m, "content"))).collect()
}

fn owned(rows: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
    rows.iter().map(|(a, b, c)| ((*a).to_owned(), (*b).to_owned(), (*c).to_owned())).collect()
}

const SAY_THE_PROMPT: &str = "\
[agents.cat]\nkind = \"command\"\nargv = [\"cat\"]\n";

#[test]
fn messages_are_merged_by_id_and_the_stored_ones_win() {
    let site = Site::with("", SAY_THE_PROMPT);
    let post = |run: &str, messages: Value| {
        let mut body = with_messages(run, messages);
        body["forwardedProps"] = json!({"agent": "cat"});
        Stream::of(site.post("/api/chat", &body)).whole();
        site.bench.check_ended(run);
    };
    post("one", json!([said("u1", "user", "first")]));
    let answer = stored(&site, "/v1/runs/one/messages");
    assert_eq!(answer[0], owned(&[("u1", "user", "first")])[0]);
    let said_by_it = answer[1].clone();
    assert_eq!(said_by_it.2, "first", "the agent is asked what the user said");

    // A client sends everything again, changed on the way, and something new.
    post(
        "two",
        json!([
            said("u1", "user", "changed since"),
            said(&said_by_it.0, "assistant", "changed as well"),
            said("u2", "user", "second"),
            said("u2", "user", "second once more"),
        ]),
    );
    let whole = stored(&site, "/v1/threads/t");
    assert_eq!(whole[..2], answer[..]);
    assert_eq!(whole[2], owned(&[("u2", "user", "second")])[0]);
    assert_eq!((whole[3].1.as_str(), whole[3].2.as_str()), ("assistant", "second"));
    assert_eq!(whole.len(), 4, "{whole:?}");
    assert_eq!(stored(&site, "/v1/runs/two/messages"), whole[2..]);

    // Nothing new: the same thing is asked once more, in the words that are stored.
    post("three", json!([said("u1", "user", "x"), said("u2", "user", "y")]));
    assert_eq!(stored(&site, "/v1/runs/three/messages").last().expect("an answer").2, "second");
}

#[test]
fn a_history_from_elsewhere_is_taken_over() {
    let site = Site::with("", SAY_THE_PROMPT);
    let call =
        json!([{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"at\":1}"}}]);
    let mut body = with_messages(
        "r",
        json!([
            said("s", "system", "be brief"),
            said("d", "developer", "be exact"),
            said("u1", "user", "before"),
            {"id": "q1", "role": "reasoning", "content": "hm"},
            {"id": "a1", "role": "assistant", "content": "I look.", "toolCalls": call},
            {"id": "x1", "role": "tool", "toolCallId": "c1", "content": "seen", "error": "but badly"},
            {"id": "p1", "role": "activity", "activityType": "PLAN", "content": {"steps": []}},
            {"id": "u2", "role": "user", "content": [
                {"type": "text", "text": "what now"}, {"type": "text", "content": "?"}]},
        ]),
    );
    body["forwardedProps"] = json!({"agent": "cat"});
    Stream::of(site.post("/api/chat", &body)).whole();
    let mut rows = stored(&site, "/v1/threads/t");
    let answer = rows.pop().expect("an answer");
    assert_eq!(answer.2, "what now?", "the last thing that the user said, and nothing of the rest");
    let expected = [
        ("s", "system", "be brief"),
        ("d", "developer", "be exact"),
        ("u1", "user", "before"),
        ("q1", "reasoning", "hm"),
        ("a1", "assistant", "I look."),
        ("x1", "tool", "seen"),
        ("u2", "user", "what now?"),
    ];
    assert_eq!(rows, owned(&expected));
    let messages = site.get("/v1/runs/r/messages").ok();
    assert_eq!(messages["messages"][4]["toolCalls"], call);
    assert_eq!(messages["messages"][5]["toolCallId"], "c1");
    assert_eq!(messages["messages"][5]["error"], "but badly");
}

#[test]
fn what_is_no_text_is_refused_by_its_place_and_type() {
    let site = Site::new();
    let part =
        |kind: &str| json!({"type": kind, "source": {"type": "url", "value": "https://x.example/a.png"}});
    for kind in ["image", "audio", "video", "document"] {
        let content = json!([{"type": "text", "text": "look"}, part(kind)]);
        let body = with_messages(
            "r",
            json!([said("u0", "user", "hi"), {"id": "u1", "role": "user", "content": content}]),
        );
        let (code, message) = site.post("/api/chat", &body).refused(400);
        assert_eq!(code, "invalid_request");
        assert!(message.contains(&format!("messages[1].content[1] of type \"{kind}\"")), "{message}");
        assert!(message.contains("text"), "what there may be: {message}");
    }
    assert_eq!(site.get("/v1/runs/r").status, 404);
}

#[test]
fn each_malformed_body_is_refused_by_its_field() {
    let site = Site::new();
    let whole = input("r", "t", "true");
    let cases = [
        (json!({"threadId": null}), "threadId is missing"),
        (json!({"threadId": 5}), "threadId must be a string"),
        (json!({"threadId": ""}), "thread id must not be empty"),
        (json!({"runId": 5}), "runId must be a string"),
        (json!({"runId": ""}), "run id must not be empty"),
        (json!({"messages": null}), "messages is missing"),
        (json!({"messages": "hi"}), "messages must be an array"),
        (json!({"messages": []}), "no message of the user"),
        (json!({"messages": [said("a", "assistant", "hi")]}), "no message of the user"),
        (json!({"messages": [5]}), "messages[0] must be an object"),
        (json!({"messages": [said("u", "user", "x"), {"role": "user"}]}), "messages[1].id is missing"),
        (json!({"messages": [{"id": 1, "role": "user"}]}), "messages[0].id must be a string"),
        (json!({"messages": [{"id": "u"}]}), "messages[0].role is missing"),
        (json!({"messages": [said("u", "boss", "x")]}), "messages[0].role must be user"),
        (json!({"messages": [{"id": "u", "role": "user", "content": 5}]}), "messages[0].content must be"),
        (json!({"messages": [{"id": "u", "role": "user", "content": [{"text": "x"}]}]}), "content[0].type"),
        (
            json!({"messages": [{"id": "u", "role": "user", "content": [{"type": "text"}]}]}),
            "content[0].text",
        ),
        (json!({"messages": [{"id": "u", "role": "assistant", "toolCalls": {}}]}), "messages[0].toolCalls"),
        (json!({"messages": [{"id": "u", "role": "assistant", "toolCalls": [{}]}]}), "toolCalls[0].id"),
        (json!({"messages": [{"id": "u", "role": "tool", "toolCallId": 1}]}), "messages[0].toolCallId"),
        (json!({"tools": {}}), "tools must be an array"),
        (json!({"context": "x"}), "context must be an array"),
        (json!({"forwardedProps": []}), "forwardedProps must be an object"),
        (json!({"forwardedProps": {"agent": 1}}), "forwardedProps.agent must be a string"),
        (json!({"forwardedProps": {"agent": "nobody"}}), "no agent \"nobody\""),
        (json!({"forwardedProps": {"model": {}}}), "forwardedProps.model must be a string"),
        (json!({"forwardedProps": {"onDisconnect": "die"}}), "forwardedProps.onDisconnect"),
    ];
    for (change, says) in cases {
        let mut body = whole.clone();
        body.as_object_mut().expect("object").extend(change.as_object().expect("object").clone());
        let (code, message) = site.post("/api/chat", &body).refused(400);
        assert_eq!(code, "invalid_request", "{change}");
        assert!(message.contains(says), "{change}: {message}");
    }
    for (text, says) in
        [("", "JSON"), ("{", "JSON"), ("[]", "object"), ("\"x\"", "object"), ("{}", "threadId")]
    {
        let (code, message) = site.ask(&Ask::new("POST", "/api/chat").body(text)).refused(400);
        assert_eq!(code, "invalid_request", "{text}");
        assert!(message.contains(says), "{text}: {message}");
    }
    let bytes = Ask::new("POST", "/api/chat").body(b"{\"threadId\":\"\xff\"}".to_vec());
    assert_eq!(site.ask(&bytes).refused(400).0, "invalid_request");
    assert_eq!(site.get("/v1/runs").ok()["runs"], json!([]), "nothing was started");
}

#[test]
fn the_request_chooses_agent_and_model() {
    let site = Site::with("", SAY_THE_PROMPT);
    let mut body = input("r", "t", "hello");
    body["forwardedProps"] = json!({"agent": "cat", "model": "large"});
    Stream::of(site.post("/api/chat", &body)).whole();
    let run = site.run("r");
    assert_eq!((&run["agent"], &run["model"]), (&json!("cat"), &json!("large")));
    // Older clients send them as `data`.
    let mut body = input("s", "s", "hello");
    body.as_object_mut().expect("object").remove("forwardedProps");
    body["data"] = json!({"agent": "cat"});
    Stream::of(site.post("/api/chat", &body)).whole();
    assert_eq!(site.run("s")["agent"], "cat");
}

#[test]
fn an_agent_that_lacks_a_variable_is_not_started() {
    let agent = "[agents.needy]\nkind = \"command\"\nargv = [\"true\"]\npass_env = [\"NOT_SET_HERE\"]\n";
    let site = Site::with("", agent);
    let mut body = input("r", "t", "hello");
    body["forwardedProps"] = json!({"agent": "needy"});
    let (code, message) = site.post("/api/chat", &body).refused(503);
    assert_eq!(code, "launch_env_missing");
    assert!(message.contains("NOT_SET_HERE") && message.contains("needy"), "{message}");
    assert_eq!(site.get("/v1/runs").ok()["runs"], json!([]));
}
