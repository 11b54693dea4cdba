//! The end of a run is one transaction, and final.

use outlast_core::Seq;
use outlast_core::decide::{ClaimRefusal, Fenced};
use outlast_core::run::{CancelReason, EndReason, Purpose, RunError, Status, Usage};
use outlast_core::transcript::Role;

use crate::NewMessage;
use crate::conformance::world::{
    World, abortion, all_at_once, append, completion, is_terminal, run_id, said, terminal_event, text_event,
    thread_id,
};
use crate::{Append, CancelOutcome, ClaimError, Finish, FinishError, LogEnd, StoreError};

/// Events, status, cause, usage, exit, sealed transcript, closed log: all there at once; the claim and the thread are free.
pub async fn ends_everything_at_once(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    let usage = vec![Usage { input_tokens: 1, output_tokens: 2, total_tokens: 3, ..Usage::default() }];
    let error = RunError { code: "agent_failed".to_owned(), message: "it broke \u{1F4A5}".to_owned() };
    let finish = completion(&token, 1);
    let finish = Finish {
        append: Append {
            messages: vec![NewMessage::new(2, said("m", Role::Assistant, "bye"))],
            ..finish.append
        },
        verdict: outlast_core::decide::EndVerdict {
            status: Status::Failed,
            error: Some(error.clone()),
            reason: EndReason::AgentFailed,
        },
        exit_code: Some(3),
        usage: usage.clone(),
        ..finish
    };
    let finished = a.store.finish(finish).await.expect("ended").run;
    let record = a.record("r").await;
    assert_eq!(finished, record);
    assert_eq!((record.status, record.error), (Status::Failed, Some(error)));
    assert_eq!((record.end_reason, record.exit_code), (Some(EndReason::AgentFailed), Some(3)));
    assert_eq!((record.usage, record.sealed, record.tail), (usage, true, 3));
    assert_eq!((record.driver, record.detached_since), (None, None));
    assert_eq!(record.finished_at, Some(record.started_at));
    let page = a.store.read(&a.tenant, &run_id("r"), Seq(1), 100, 10_000).await.expect("read");
    assert_eq!((page.end, page.tail, page.events.len()), (LogEnd::Closed, Seq(3), 2));
    assert!(page.is_last(Seq(1)) && is_terminal(&page.events[1]));
    assert_eq!(a.store.run_messages(&a.tenant, &run_id("r")).await.expect("messages").len(), 1);
    assert_eq!(a.store.find_active_run(&a.tenant, &thread_id("t")).await.expect("answered"), None);
    a.accept("r2", "t").await;
}

/// The same finish again, whose answer was lost, is answered with the ended run and writes nothing.
pub async fn the_same_finish_again(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    let finish = completion(&token, 1);
    a.store.finish(finish.clone()).await.expect("ended");
    let before = a.snapshot("r").await;
    let again = a.store.finish(finish).await.expect("known").run;
    assert_eq!(again, a.record("r").await);
    assert_eq!(a.snapshot("r").await, before);
}

/// Of many ends at once, one is written.
pub async fn once_out_of_many(world: World) {
    let a = world.host("a").await;
    for round in 0..5 {
        let run = format!("r{round}");
        let token = a.accept(&run, &run).await.token;
        let answers = all_at_once((0..12).map(|_| {
            let (a, token) = (a.clone(), token.clone());
            async move { a.complete(&token, 1).await }
        }))
        .await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
        let told = |answer: &&Result<_, _>| {
            matches!(answer, Err(FinishError::Fenced(Fenced::TerminalRun(Status::Completed))))
        };
        assert_eq!(answers.iter().filter(told).count(), 11, "{answers:?}");
        let log = a.log(&run).await;
        assert_eq!((log.len(), log.iter().filter(|event| is_terminal(event)).count()), (3, 1));
    }
}

/// An end that names another tail than there is ends nothing.
pub async fn a_moved_tail_ends_nothing(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    a.append(&token, 1, &["x"]).await.expect("written");
    let before = a.snapshot("r").await;
    let refused = a.complete(&token, 1).await;
    assert!(
        matches!(refused, Err(FinishError::TailMoved { expected: Seq(1), actual: Seq(2) })),
        "{refused:?}"
    );
    assert_eq!(a.snapshot("r").await, before);
}

/// An end without a terminal event, with two, with one that is not the last, or without a terminal status is refused.
pub async fn ends_with_one_terminal_event(world: World) {
    let a = world.host("a").await;
    let token = a.accept("r", "t").await.token;
    let before = a.snapshot("r").await;
    let ending =
        |events| Finish { append: Append { events, ..append(&token, 1, &[]) }, ..completion(&token, 1) };
    let mut alive = completion(&token, 1);
    alive.verdict.status = Status::Interrupted;
    for finish in [
        ending(vec![]),
        ending(vec![text_event("x")]),
        ending(vec![terminal_event(), terminal_event()]),
        ending(vec![terminal_event(), text_event("x")]),
        alive,
    ] {
        let refused = a.store.finish(finish).await;
        assert!(matches!(refused, Err(FinishError::Store(StoreError::Unusable { .. }))), "{refused:?}");
    }
    assert_eq!(a.snapshot("r").await, before);
}

/// Nothing that comes after the end changes it: another end, a cancel, a claim, a renewal.
pub async fn the_end_stays(world: World) {
    let (a, b) = (world.host("a").await, world.host("b").await);
    let token = a.accept("r", "t").await.token;
    a.complete(&token, 1).await.expect("ended");
    let before = a.snapshot("r").await;
    let refused = a.store.finish(abortion(&token, 3, CancelReason::User)).await;
    assert!(matches!(refused, Err(FinishError::Fenced(Fenced::TerminalRun(Status::Completed)))));
    let outcome = b.stop("r").await;
    assert!(matches!(outcome, CancelOutcome::Terminal(run) if run.status == Status::Completed));
    let refused = b.claim("r", Purpose::End).await;
    assert!(matches!(refused, Err(ClaimError::Refused(ClaimRefusal::TerminalRun(Status::Completed)))));
    assert_eq!(a.renew(&[&token]).await, []);
    assert_eq!(a.snapshot("r").await, before);
}
