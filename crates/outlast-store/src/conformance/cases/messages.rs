//! The transcript.

use outlast_core::Tenant;
use outlast_core::transcript::{FunctionCall, Message, Role, ToolCall};

use crate::NewMessage;
use crate::conformance::world::{Host, World, append, completion, run_id, said, thread_id};
use crate::{Accept, Append, Clock};

async fn thread(host: &Host, thread: &str) -> Vec<(String, i64, String)> {
    let rows = host
        .store
        .thread_messages(&host.tenant, &thread_id(thread), None, usize::MAX)
        .await
        .expect("messages")
        .messages;
    rows.into_iter()
        .map(|row| (row.run_id.as_str().to_owned(), row.ordinal, row.message.content.unwrap_or_default()))
        .collect()
}

/// A message in the place of an earlier one replaces it; the order is that of their places.
pub async fn later_updates_replace(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    let call = Message {
        content: None,
        tool_calls: vec![ToolCall {
            id: "c".to_owned(),
            kind: "function".to_owned(),
            function: FunctionCall { name: "ls".to_owned(), arguments: "{\"a\":\"\u{0}\"}".to_owned() },
        }],
        ..said("call", Role::Assistant, "")
    };
    let result = Message {
        tool_call_id: Some("c".to_owned()),
        error: Some("no".to_owned()),
        ..said("res", Role::Tool, "no")
    };
    let with = |tail, messages| Append { messages, ..append(&token, tail, &["x"]) };
    let early =
        vec![NewMessage::new(10, result.clone()), NewMessage::new(2, said("m", Role::Assistant, "par"))];
    a.store.append(with(1, early)).await.expect("written");
    let late = vec![
        NewMessage::new(2, said("m", Role::Assistant, "partial\u{0}\u{1F980}")),
        NewMessage::new(3, call.clone()),
    ];
    a.store.append(with(2, late)).await.expect("written");
    let rows = a.store.run_messages(&a.tenant, &run_id("r")).await.expect("messages");
    let rows: Vec<_> = rows.into_iter().map(|row| (row.ordinal, row.message)).collect();
    let whole = said("m", Role::Assistant, "partial\u{0}\u{1F980}");
    assert_eq!(rows, [(2, whole), (3, call), (10, result)]);
}

/// A thread's messages come in the order in which its runs were accepted, whatever the wall clock did meanwhile.
pub async fn a_thread_is_in_order_of_acceptance(world: World) {
    let a = world.host("a").await;
    let elsewhere = a.accept("elsewhere", "other").await.token;
    let write = Append {
        messages: vec![NewMessage::new(1, said("x", Role::Assistant, "elsewhere"))],
        ..append(&elsewhere, 1, &[])
    };
    a.store.append(write).await.expect("written");
    // Ids whose order as text is another.
    for (run, back) in [("r2", 0), ("r1", 5_000), ("r3", 5_000)] {
        world.clock.set_wall(world.clock.wall_ms() - back);
        let messages = NewMessage::input(vec![said("u", Role::User, &format!("ask {run}"))]);
        let token = a.accept_with(Accept { messages, ..a.request(run, "t") }).await.token;
        let finish = completion(&token, 1);
        let messages = vec![NewMessage::new(2, said("m", Role::Assistant, &format!("answer {run}")))];
        let append = Append { messages, ..finish.append };
        a.store.finish(crate::Finish { append, ..finish }).await.expect("ended");
    }
    let expected: Vec<_> = ["r2", "r1", "r3"]
        .into_iter()
        .flat_map(|run| {
            [(run.to_owned(), -1, format!("ask {run}")), (run.to_owned(), 2, format!("answer {run}"))]
        })
        .collect();
    assert_eq!(thread(&a, "t").await, expected);
    assert_eq!(thread(&a, "none").await, []);
}

/// The session to resume is the latest that an agent of the kind had on the thread, before the run that asks.
pub async fn sessions_of_a_thread(world: World) {
    let a = world.host("a").await;
    let session = |kind: &'static str, before: &'static str| {
        let a = a.clone();
        async move {
            let (store, thread) = (&a.store, thread_id("t"));
            store.last_agent_session(&a.tenant, &thread, kind, &run_id(before)).await.expect("answered")
        }
    };
    for (run, kind, session) in [
        ("r1", "codex", Some("s1")),
        ("r2", "command", Some("s2")),
        ("r3", "codex", None),
        ("r4", "codex", Some("s4")),
    ] {
        let mut request = a.request(run, "t");
        request.spec.kind = kind.to_owned();
        let token = a.accept_with(request).await.token;
        let write = Append { agent_session: session.map(ToOwned::to_owned), ..append(&token, 1, &["x"]) };
        a.store.append(write).await.expect("written");
        a.complete(&token, 2).await.expect("ended");
    }
    assert_eq!(session("codex", "r1").await, None);
    assert_eq!(session("codex", "r2").await.as_deref(), Some("s1"));
    assert_eq!(session("codex", "r4").await.as_deref(), Some("s1"));
    assert_eq!(session("command", "r4").await.as_deref(), Some("s2"));
    assert_eq!(session("command", "r2").await, None);
    let mut later = a.request("r5", "t");
    later.spec.kind = "codex".to_owned();
    a.accept_with(later).await;
    assert_eq!(session("codex", "r5").await.as_deref(), Some("s4"));
    assert_eq!(session("codex", "unknown").await, None);
    let other = Tenant("other".to_owned());
    let none = a.store.last_agent_session(&other, &thread_id("t"), "codex", &run_id("r5")).await;
    assert_eq!(none.expect("answered"), None);
}
