//! Tables and properties of envelopes, records, pointers and the fold.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::event::{Chunk, EventKind};
use crate::run::Status;
use crate::transcript::{FunctionCall, Message, Role, ToolCall};
use crate::{RunId, Tenant, ThreadId, WorkspaceRef};

fn run_id(text: &str) -> RunId {
    RunId::new(text).expect("id")
}

fn samples() -> Vec<(String, Record)> {
    let reference = WorkspaceRef::from_digest([7; 32]);
    let message = Record::Message {
        run_id: run_id("a/b c"),
        ordinal: -3,
        message: Message::text("m", Role::Tool, "x\u{0}\u{1F980}\""),
    };
    let started = Record::RunStarted(RunStarted {
        run_id: run_id("r"),
        agent: "demo".into(),
        model: None,
        title: title("\n  Do this \nand that"),
    });
    let ended = Record::RunEnded(RunEnded {
        run_id: run_id("r"),
        status: Status::Failed,
        end_reason: None,
        error: None,
        exit_code: Some(3),
        usage: Vec::new(),
    });
    let mut samples: Vec<(String, Record)> = [message, started, ended]
        .into_iter()
        .map(|record| (record.own_id().expect("its own"), record))
        .collect();
    let made = WorkspaceCheckpointed {
        reference,
        consistency: Consistency::Fuzzy,
        trigger: Trigger::RunEnded,
        run_id: Some(run_id("r")),
    };
    samples.push(("w".into(), Record::WorkspaceCheckpointed(made)));
    samples.push(("v".into(), Record::WorkspaceRestored(WorkspaceRestored { reference, run_id: None })));
    samples.push(("s".into(), Record::SessionStopped(SessionStopped { reason: StopReason::Idle })));
    samples.push(("b".into(), Record::Barrier { epoch: 4 }));
    samples
}

#[test]
fn records_come_back_from_envelopes() {
    for (id, record) in samples() {
        for salt in [None, Some("salt".to_owned())] {
            let envelope = record.envelope(&id, salt);
            let read = Envelope::decode(envelope.encode().as_bytes()).expect("readable");
            let decoded = Record::decode(&read.kind, read.skip, &read.id, read.body.get()).expect("known");
            assert_eq!(decoded, Decoded::Known(Box::new(record.clone())));
            assert_eq!(read.sum(), checksum(record.kind().as_str(), &id, &record.body()));
        }
        let (plain, salted) = (record.envelope(&id, None), record.envelope(&id, Some("x".into())));
        assert_ne!(plain.encode(), salted.encode(), "another body");
        assert_eq!(plain.sum(), salted.sum(), "of the same record");
    }
}

/// The stored form: what is written today must be readable for ever.
#[test]
fn the_form_stays() {
    let (id, record) = &samples()[0];
    let expected = concat!(
        r#"{"v":1,"kind":"message","id":"message/a/b c/-3","#,
        r#""sum":"dac33f7e90be17d0c205d9820d6541db3b97b430d51a111c6ddce6a785cfb17e","#,
        r#""body":{"id":"m","role":"tool","content":"x\u0000🦀\""}}"#
    );
    assert_eq!(record.envelope(id, None).encode(), expected);
    // As `printf "a\nb\nc" | sha256sum` has it.
    assert_eq!(checksum("a", "b", "c"), "ea7fb08b7a2dc4619ffb7c7bb38d95a2047935fa165d71b12efd3852a2e6d0cc");
}

#[test]
fn what_is_no_envelope() {
    let good = samples()[1].1.envelope("run_started/r", None).encode();
    let with = |from: &str, to: &str| good.replacen(from, to, 1);
    let says = |text: &str| Envelope::decode(text.as_bytes()).expect_err(text).to_string();
    for (text, expected) in [
        (String::new(), "no record"),
        ("[]".into(), "no record"),
        (good[..good.len() - 1].to_owned(), "no record"),
        (format!("{good} x"), "no record"),
        (with("\"v\":1", "\"v\":2"), "version 2"),
        (with("\"v\":1,", ""), "no record"),
        (with("demo", "dem0"), "damaged"),
        (with("\"id\":\"run_started/r\"", "\"id\":\"run_started/s\""), "damaged"),
        (with("\"id\":\"run_started/r\"", "\"id\":\"\""), "1 to 512 bytes"),
        (with("\"kind\":\"run_started\"", "\"kind\":\"Run\""), "no kind"),
        (with("\"kind\":\"run_started\"", "\"kind\":\"message\""), "damaged"),
        (with("\"id\":", "\"id\":\"x\",\"id\":"), "duplicate"),
    ] {
        assert!(says(&text).contains(expected), "{text}: {}", says(&text));
    }
    let huge = vec![b' '; MAX_BODY_BYTES + 5000];
    assert!(matches!(Envelope::decode(&huge), Err(EnvelopeError::TooLarge { .. })));
    // What a newer version adds beside it makes no difference.
    assert!(Envelope::decode(with("{\"v\":1,", "{\"new\":[1],\"v\":1,").as_bytes()).is_ok());
}

#[test]
fn kinds_that_are_not_known() {
    let decode = |skip| Record::decode("from_the_future", skip, "x", "{}");
    assert_eq!(decode(true), Ok(Decoded::Skipped));
    let refused = decode(false).expect_err("not to be passed over");
    assert!(refused.to_string().contains("newer program"), "{refused}");
    for (kind, id, body) in [
        ("message", "message/r", "{}"),
        ("message", "message/r/x", "{}"),
        ("message", "message/r/1", "[]"),
        ("run_ended", "x", "{}"),
        ("workspace_checkpointed", "x", r#"{"ref":"v1:sha256:00","consistency":"fuzzy","trigger":"manual"}"#),
        ("barrier", "x", "{\"epoch\":-1}"),
    ] {
        assert!(
            matches!(Record::decode(kind, true, id, body), Err(RecordError::Body { .. })),
            "{kind} {body}"
        );
    }
}

#[test]
fn messages_are_named_by_run_and_place() {
    for (run, ordinal) in [("r", 0), ("a/b/-1", -7), ("message/x", i64::MAX)] {
        let id = message_id(&run_id(run), ordinal);
        assert_eq!(message_place(&id), Some((run_id(run), ordinal)));
        assert!(id.len() <= MAX_RECORD_ID_BYTES);
    }
    let longest = message_id(&run_id(&"x".repeat(150)), i64::MIN);
    assert!(longest.len() <= MAX_RECORD_ID_BYTES);
    for id in ["message/", "message/1", "run/r/1", "message//1", "message/r/1.0"] {
        assert_eq!(message_place(id), None, "{id}");
    }
}

#[test]
fn sessions_are_named_for_ever() {
    let thread = |text: &str| ThreadId::new(text).expect("id");
    let deployment = "3f1c2a52-7a0e-4c37-9b0f-0d5b5b7f5a01";
    let id = SessionId::of(deployment, &Tenant::default(), &thread("t"));
    assert_eq!(id.as_str().as_bytes()[14], b'5', "version 5: {id}");
    assert_eq!(id, SessionId::of(deployment, &Tenant::default(), &thread("t")));
    for other in [
        SessionId::of(deployment, &Tenant("t".into()), &thread("t")),
        SessionId::of(deployment, &Tenant::default(), &thread("T")),
        SessionId::of("3f1c2a52-7a0e-4c37-9b0f-0d5b5b7f5a02", &Tenant::default(), &thread("t")),
    ] {
        assert_ne!(id, other);
    }
    assert_eq!(SessionId::parse(id.as_str()), Ok(id.clone()));
    for no in ["", "t", &id.as_str().to_uppercase(), &id.as_str().replace('-', ""), &format!("{{{id}}}")] {
        assert!(SessionId::parse(no).is_err(), "{no}");
    }
}

#[test]
fn pointers_stay_within_their_session() {
    let session = SessionId::of("d", &Tenant::default(), &ThreadId::new("t").expect("id"));
    let other = SessionId::of("d", &Tenant::default(), &ThreadId::new("u").expect("id"));
    let good = Pointer::new(&session, &[0xAB; 32], 5);
    assert_eq!(good.check(&session), Ok("ab".repeat(32).as_str()));
    let at = |key: String| Pointer { key, size: 5 };
    let prefix = session.blobs_prefix();
    for (pointer, outside) in [
        (Pointer::new(&other, &[0xAB; 32], 5), true),
        (at(format!("{prefix}/../{}", "a".repeat(64))), true),
        (at(format!("{prefix}{}", "a".repeat(64))), true),
        (at("/etc/passwd".into()), true),
        (at(String::new()), true),
        (at(format!("{prefix}/")), false),
        (at(format!("{prefix}/{}", "A".repeat(64))), false),
        (at(format!("{prefix}/{}", "a".repeat(63))), false),
    ] {
        let refused = pointer.check(&session).expect_err("refused");
        assert_eq!(matches!(refused, PointerError::OutsideSession { .. }), outside, "{refused}");
    }
    let large = Pointer { size: MAX_BODY_BYTES as u64 + 1, ..good };
    assert!(matches!(large.check(&session), Err(PointerError::TooLarge { .. })));
}

#[test]
fn titles() {
    for (text, expected) in [
        ("", None),
        (" \n\t\n", None),
        ("  one \ntwo", Some("one".to_owned())),
        (&"é".repeat(100), Some("é".repeat(80))),
    ] {
        assert_eq!(title(text), expected);
    }
}

#[test]
fn what_stands_for_a_body_is_small_and_says_so() {
    let long = "🦀".repeat(100_000);
    let function = FunctionCall { name: "Bash".into(), arguments: json!({"command": long}).to_string() };
    let message = Message {
        tool_calls: vec![ToolCall { id: "c".into(), kind: "function".into(), function }],
        error: Some(long.clone()),
        ..Message::text("m", Role::Assistant, long.clone())
    };
    let stub = stub_message(&message);
    let json = serde_json::to_string(&stub).expect("json");
    assert!(json.len() < 5000 && stub.id == "m", "{}", json.len());
    assert!(stub.content.as_deref().is_some_and(|text| text.contains("of 400000 bytes are missing")));
    let arguments: serde_json::Value =
        serde_json::from_str(&stub.tool_calls[0].function.arguments).expect("arguments are JSON");
    assert!(arguments["missing"].as_str().is_some_and(|text| text.contains("missing")));
    assert_eq!(
        stub_message(&Message::text("m", Role::User, "short")),
        Message::text("m", Role::User, "short")
    );
    let event = |value: serde_json::Value| Chunk { kind: EventKind::ToolCallResult, json: value.to_string() };
    let chunk =
        event(json!({"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": long}));
    let stub: serde_json::Value = serde_json::from_str(&stub_event(&chunk).json).expect("json");
    assert_eq!((&stub["type"], &stub["toolCallId"]), (&json!("TOOL_CALL_RESULT"), &json!("c")));
    assert!(stub["content"].as_str().is_some_and(|text| text.contains("are missing")));
    let many = event(json!({"type": "RAW", "messageId": "m", "event": vec!["x".repeat(900); 1000]}));
    let stub = stub_event(&many).json;
    assert!(stub.len() < 1000 && stub.contains("\"RAW\""), "{stub}");
}

#[test]
fn a_fold_of_another_version_is_not_used() {
    let mut fold = Fold::empty();
    for (seq, (_, record)) in (1..).zip(samples()) {
        fold.apply(seq, 1000 + seq, &record);
    }
    assert_eq!((fold.messages, fold.runs, fold.checkpoints, fold.seq), (1, 1, 1, 7));
    assert!(fold.workspace.as_ref().is_some_and(|now| now.restored && now.seq == 5));
    assert_eq!(fold.stopped.as_ref().map(|stopped| stopped.at), Some(1006));
    assert_eq!(Fold::read(&fold.to_json()), Some(fold.clone()));
    for other in [String::new(), "{}".into(), Fold { version: 9, ..fold }.to_json()] {
        assert_eq!(Fold::read(&other), None);
    }
}

proptest! {
    /// Whatever the bytes are, they are refused or understood.
    #[test]
    fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = Envelope::decode(&bytes);
    }

    /// A record that was changed anywhere is not taken for what was written.
    #[test]
    fn no_change_goes_unnoticed(which in 0usize..7, at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let (id, record) = samples().swap_remove(which);
        let mut bytes = record.envelope(&id, None).encode().into_bytes();
        let at = at.index(bytes.len());
        prop_assume!(bytes[at] != to);
        bytes[at] = to;
        if let Ok(read) = Envelope::decode(&bytes) {
            // Only what is no part of the record may have changed: blanks, the name of a field that is optional.
            prop_assert_eq!(read.sum(), checksum(record.kind().as_str(), &id, &record.body()));
        }
    }

    /// What stands for a text is never longer than a little more than it was, and never cuts a character.
    #[test]
    fn stubs_are_text(text in "\\PC{0,3000}") {
        let stub = stub_message(&Message::text("m", Role::User, text.clone()));
        prop_assert!(stub.content.unwrap_or_default().len() <= text.len().min(1024) + 80);
    }
}
