//! Bodies that are elsewhere, of messages that grow.

use outlast_core::ledger::{Pointer, SessionId};
use outlast_core::transcript::{Message, Role};
use outlast_core::{RunId, ThreadId};
use outlast_store::{Append, NewMessage, Offloaded};

use super::support::{append_of, completion, host, ledger};

fn message(text: &str, body: Option<&Pointer>) -> NewMessage {
    let message = NewMessage::new(2, Message::text("m", Role::Tool, text));
    let offloaded = body.map(|pointer| Offloaded { pointer: pointer.clone(), sum: format!("sum of {text}") });
    NewMessage { offloaded, ..message }
}

/// A message that replaces another replaces its body too, and its checksum.
#[tokio::test]
async fn a_message_that_grows_and_shrinks() {
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path(), "here");
    let token = host.accept("r", "t").await.token;
    let deployment = host.store.deployment_id().await.unwrap();
    let session = SessionId::of(&deployment, &host.tenant, &ThreadId::new("t").unwrap());
    let [one, two] = [1, 2].map(|n| Pointer::new(&session, &[n; 32], 1_000_000));
    let run = RunId::new("r").unwrap();
    for (tail, body) in [(1, None), (2, Some(&one)), (3, Some(&two)), (4, None), (5, Some(&one))] {
        let messages = vec![message(&format!("{tail}"), body)];
        let append = Append { messages, barrier: Some(0), ..append_of(&token, tail, 10) };
        host.store.append(append).await.unwrap();
        let rows = host.store.run_messages(&host.tenant, &run).await.unwrap();
        assert_eq!((rows.len(), rows[0].pointer.as_ref()), (1, body), "{tail}");
        let pointers = host.store.pointers(&session).await.unwrap();
        assert!(pointers.iter().eq(body), "{tail}: {pointers:?}");
    }
    host.store.finish(completion(&token, 6)).await.unwrap();
    let (_, found) = ledger(&host, "t").await;
    assert_eq!((found[1].pointer.as_ref(), found[1].sum.as_str()), (Some(&one), "sum of 5"));
}
