//! What must be so at the end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast_core::event::{Chunk, EventKind};
use outlast_core::run::{CancelReason, EndReason, RunRecord, Status};
use outlast_core::transcript::{Message, fold_log};
use outlast_core::{InstanceId, RunId, Seq, Tenant};
use outlast_runtime::VerifyError;
use outlast_store::{Ledger, ListRuns, Log, LogEnd, Runs, StoredEvent};

use super::agent::Script;
use super::viewer::Viewed;
use super::world::{World, kept};

/// Lets everything come to its end, and tells which promises were broken.
pub(super) async fn settle_and_check(
    world: &Arc<World>,
    views: &[(RunId, Arc<Mutex<Viewed>>)],
) -> Vec<String> {
    let end = world.time.now() + outlast_core::duration::millis(world.plan.calm);
    let mut broken = Vec::new();
    loop {
        let runs = runs(world).await;
        let over = runs.len() == world.plan.runs && runs.iter().all(|run| run.status.is_terminal());
        let seen =
            views.iter().all(|(_, viewed)| viewed.lock().unwrap_or_else(PoisonError::into_inner).closed);
        let gone = sandboxes_to_go(world).await;
        if over && seen && gone.is_empty() {
            break;
        }
        if world.time.now() > end {
            let left = runs.iter().filter(|run| !run.status.is_terminal());
            let left: Vec<String> = left.map(|run| format!("{:?} {:?}", run.run_id, run.driver)).collect();
            broken.push(format!(
                "not over in time: {} of {} runs known, alive {left:?}, viewers done: {seen}, sandboxes left: {gone:?}",
                runs.len(),
                world.plan.runs
            ));
            return broken;
        }
        world.time.sleep(Duration::from_secs(1)).await;
    }
    // Whatever was frozen has thawed by now, and has had time to do harm.
    world.time.sleep(Duration::from_secs(60)).await;
    for run in runs(world).await {
        let events = events(world, &run.run_id).await;
        let run_id = run.run_id.clone();
        let mut say = |what: String| broken.push(format!("{run_id}: {what}"));
        check_log(world, &run, &events, &mut say);
        check_agent(world, &run, &events, &mut say);
        check_transcript(world, &run, &events, &mut say).await;
        if let Some(host) = world.any_host() {
            match host.host.verify(&run.run_id).await {
                Ok(report) if report.compared + report.of_the_host == events.len() as u64 => {}
                Err(VerifyError::JournalGone(_)) if world.sandboxes.is_pruned(&run.run_id) => {}
                Ok(report) => say(format!("verify looked at {report:?} of {} events", events.len())),
                // Its sandbox has gone with it, or was destroyed since nobody could say that its agent was dead.
                Err(VerifyError::JournalGone(_) | VerifyError::Unreachable(_))
                    if !kept(&run_id) || was_given_up(&run) => {}
                Err(error) => say(format!("verify: {error}")),
            }
        }
        for (of, viewed) in views.iter().filter(|(of, _)| *of == run_id) {
            let viewed = viewed.lock().unwrap_or_else(PoisonError::into_inner);
            let stored: Vec<(Seq, String)> =
                events.iter().map(|event| (event.seq, event.json.clone())).collect();
            if viewed.events != stored {
                say(format!(
                    "a viewer of {of} saw {} events, {} are stored",
                    viewed.events.len(),
                    stored.len()
                ));
            }
        }
    }
    broken
}

/// How many runs ended with each status.
pub(super) async fn ends(world: &World) -> BTreeMap<String, usize> {
    let mut ends = BTreeMap::new();
    for run in runs(world).await {
        let reason = run.end_reason.map_or_else(String::new, |reason| format!(" {reason}"));
        *ends.entry(format!("{}{reason}", run.status)).or_insert(0) += 1;
    }
    ends
}

/// Whether the run was ended without its journal, or without knowing that its agent was dead.
fn was_given_up(run: &RunRecord) -> bool {
    matches!(
        run.end_reason,
        Some(EndReason::CancelledUnverified | EndReason::BudgetExceeded | EndReason::SandboxGone)
    )
}

/// Sandboxes that should be gone once their run has ended.
async fn sandboxes_to_go(world: &World) -> Vec<InstanceId> {
    let mut to_go = world.sandboxes.list();
    for run in runs(world).await.into_iter().filter(|run| kept(&run.run_id)) {
        to_go.retain(|instance| Some(instance) != run.instance_id.as_ref());
    }
    to_go
}

async fn runs(world: &World) -> Vec<RunRecord> {
    world.store.list_runs(&ListRuns { limit: 1000, ..ListRuns::default() }).await.unwrap_or_default()
}

async fn events(world: &World, run_id: &RunId) -> Vec<StoredEvent> {
    let page = world.store.read(&Tenant::default(), run_id, Seq::START, usize::MAX, usize::MAX).await;
    page.map_or_else(
        |_| Vec::new(),
        |page| {
            debug_assert_eq!(page.end, LogEnd::Closed);
            page.events
        },
    )
}

fn kind(event: &StoredEvent) -> Option<EventKind> {
    let value: serde_json::Value = serde_json::from_str(&event.json).ok()?;
    EventKind::parse(value.get("type")?.as_str()?)
}

fn check_log(world: &World, run: &RunRecord, events: &[StoredEvent], say: &mut dyn FnMut(String)) {
    if !events.iter().map(|event| event.seq.0).eq(1..=events.len() as u64) {
        say("its offsets do not count up".to_owned());
    }
    let terminal: Vec<usize> =
        (0..events.len()).filter(|n| kind(&events[*n]).is_some_and(EventKind::is_terminal)).collect();
    if terminal != [events.len().saturating_sub(1)] {
        say(format!("terminal events at {terminal:?} of {}", events.len()));
    }
    let starts = events.iter().filter(|event| kind(event) == Some(EventKind::RunStarted)).count();
    if starts > 1 {
        say(format!("RUN_STARTED {starts} times"));
    }
    let last = events.last().and_then(kind);
    if (run.status == Status::Completed) != (last == Some(EventKind::RunFinished)) {
        say(format!("it is {} and its log ends with {last:?}", run.status));
    }
    let cancelled = world.cancelled.lock().unwrap_or_else(PoisonError::into_inner).contains(&run.run_id);
    // Where its time was up before, the first wish stays, and the journal decides.
    let by_person = run.cancel_requested.is_none_or(|cancel| cancel.reason == CancelReason::User);
    if cancelled && by_person && run.status != Status::Aborted {
        say(format!("it was cancelled while it lived and is {}", run.status));
    }
    if run.cancel_requested.is_none() && run.status == Status::Aborted {
        say("it is aborted and nobody stopped it".to_owned());
    }
    if !run.sealed || run.driver.is_some() {
        say("it has ended and is not sealed, or has a driver".to_owned());
    }
}

/// The log holds what the agent has printed, each line once; there was one agent, and it is dead.
fn check_agent(world: &World, run: &RunRecord, events: &[StoredEvent], say: &mut dyn FnMut(String)) {
    let now = world.time.now();
    let agents = world.sandboxes.agents(&run.run_id);
    let starts: u32 = agents.iter().map(|agent| agent.starts).sum();
    if starts > 1 {
        say(format!("its agent was started {starts} times"));
    }
    let printed: Vec<_> = agents.iter().filter_map(|agent| agent.now(now)).collect();
    if printed.iter().any(|agent| agent.alive) {
        say("it has ended and its agent lives".to_owned());
    }
    let text: String = events
        .iter()
        .filter(|event| kind(event) == Some(EventKind::TextMessageContent))
        .filter_map(|event| {
            let value: serde_json::Value = serde_json::from_str(&event.json).ok()?;
            Some(value.get("delta")?.as_str()?.to_owned())
        })
        .collect();
    let expected = printed.first().map_or_else(String::new, |agent| Script::text(agent.lines));
    // What was given up was delivered as far as it had come.
    let given_up = was_given_up(run);
    if if given_up { !expected.starts_with(&text) } else { text != expected } {
        let lines = |text: &str| text.lines().count();
        say(format!("its log holds {} lines, its agent printed {}", lines(&text), lines(&expected)));
    }
    let exit = printed.first().and_then(|agent| agent.exit);
    let fits = match (run.status, exit) {
        (Status::Completed, Some(0)) | (Status::Aborted, _) => true,
        (Status::Failed, Some(_)) if given_up => true,
        (Status::Failed, Some(exit)) => exit != 0,
        // Nothing could be started, and nothing was.
        (Status::Failed, None) if run.end_reason == Some(EndReason::LaunchFailed) => starts == 0,
        (Status::Failed, None) => {
            world.lost.lock().unwrap_or_else(PoisonError::into_inner).contains(&run.run_id)
        }
        _ => false,
    };
    if !fits {
        say(format!("it is {} ({:?}) and its agent exited with {exit:?}", run.status, run.error));
    }
}

async fn check_transcript(
    world: &World,
    run: &RunRecord,
    events: &[StoredEvent],
    say: &mut dyn FnMut(String),
) {
    let chunks: Vec<(Seq, Chunk)> = events
        .iter()
        .filter_map(|event| Some((event.seq, Chunk { kind: kind(event)?, json: event.json.clone() })))
        .collect();
    let folded = fold_log(chunks.iter().map(|(seq, chunk)| (*seq, chunk)));
    let rows = world.store.run_messages(&Tenant::default(), &run.run_id).await.unwrap_or_default();
    let stored: Vec<Message> = rows.into_iter().map(|row| row.message).collect();
    if stored != folded {
        say(format!("its transcript has {} messages, its log yields {}", stored.len(), folded.len()));
    }
}
