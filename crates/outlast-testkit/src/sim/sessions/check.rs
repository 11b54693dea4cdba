//! What must be so at the end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::decide::{RecordsRefusal, SessionState};
use outlast_core::event::EventKind;
use outlast_core::ledger::{Decoded, Fold, Record};
use outlast_core::{RunId, Seq, Tenant};
use outlast_session::AddError;
use outlast_session::upkeep::UpkeepOptions;
use outlast_store::{
    AppendRecords, Ledger, ListRuns, ListSessions, Log, LogEnd, ReadRecords, RecordsError, Runs, SessionHead,
    StoredRecord,
};
use tokio::task::JoinHandle;

use super::content;
use super::hosts::Member;
use super::objects::short;
use super::world::World;

/// How long it may take until all clients know what became of what they wanted.
const CALM: Duration = Duration::from_secs(600);

/// Lets everything come to its end, and tells which promises were broken.
pub(super) async fn settle_and_check(world: &Arc<World>, clients: Vec<JoinHandle<()>>) {
    let all = futures_util::future::join_all(clients);
    if world.within(CALM, all).await.is_none() {
        return world.watch.say("clients have no answer in time".to_owned());
    }
    // Whatever was frozen has thawed by now, and has had time to do harm; leases of the dead have run out.
    world.time.sleep(Duration::from_secs(200)).await;
    let Some(host) = world.any_host() else { return world.watch.say("no host runs".to_owned()) };
    let before = sessions(world).await;
    for session in &before {
        check_session(world, &host, session).await;
    }
    collect_twice(world, &host).await;
    for session in sessions(world).await {
        check_objects(world, &session).await;
        world.deeds("deleted", u64::from(session.state == SessionState::Deleted));
        if session.state == SessionState::Active {
            check_session(world, &host, &session).await;
        }
    }
    check_foreign(world);
    check_closed(world, &host).await;
}

/// As servers do, either every session however little has happened in it, or those that are due, for a day and more.
async fn collect_twice(world: &World, host: &Member) {
    let thorough = world.dice.permille(500);
    let options = UpkeepOptions { gc: world.gc(), tenant: None, thorough };
    // The first may finish deletions; an hour later is the second look.
    let wait = if thorough { 3700 } else { 25 * 3600 };
    for _ in 0..2 {
        let done = host.sessions.upkeep(&options, &|| true).await;
        if done.failed() {
            world.watch.say(format!("in calm, the upkeep fails: {done:?}"));
        }
        world.time.sleep(world.plan.grace + Duration::from_secs(wait)).await;
    }
    host.sessions.upkeep(&options, &|| true).await;
}

async fn sessions(world: &World) -> Vec<SessionHead> {
    let query = ListSessions { limit: 1000, ..ListSessions::default() };
    world.store.list_sessions(&query).await.unwrap_or_default()
}

/// The ledger holds what was promised, and everything can be read.
async fn check_session(world: &World, host: &Member, session: &SessionHead) {
    let id = &session.session_id;
    let say = |what: String| world.watch.say(format!("{}: {what}", session.thread_id));
    if session.state != SessionState::Active {
        return;
    }
    let query = ReadRecords {
        session_id: id.clone(),
        after: 0,
        kinds: Vec::new(),
        max_records: usize::MAX,
        max_bytes: usize::MAX,
    };
    let records = match world.store.read_records(&query).await {
        Ok(page) => page.records,
        Err(error) => return say(format!("its records cannot be read: {error}")),
    };
    if !records.iter().map(|record| record.seq).eq(1..=session.tip) {
        say(format!("its records do not count up to {}", session.tip));
    }
    let ids: BTreeSet<&str> = records.iter().map(|record| record.id.as_str()).collect();
    if ids.len() != records.len() {
        say("an id is there twice".to_owned());
    }
    let (mut fold, mut live) = (Fold::empty(), BTreeSet::new());
    for stored in &records {
        match stored.decode() {
            Ok(Decoded::Known(record)) => fold.apply(stored.seq, stored.at, &record),
            other => say(format!("record {} is {other:?}", stored.seq)),
        }
        match host.sessions.bodies().resolve_record(id, stored).await {
            Ok(Some(record)) => check_record(stored, &record, &mut live, &say),
            other => say(format!("record {} cannot be read: {other:?}", stored.seq)),
        }
    }
    if session.fold.as_ref() != Some(&fold) {
        say(format!("it keeps {:?}, its records yield {fold:?}", session.fold));
    }
    for ((thread, name), (seq, record)) in world.watch.acked() {
        if thread != session.thread_id {
            continue;
        }
        let found = usize::try_from(seq).ok().and_then(|seq| records.get(seq - 1));
        let Some(stored) = found.filter(|stored| stored.id == name) else {
            say(format!("{name} was acknowledged as {seq} and is not there"));
            continue;
        };
        let read = host.sessions.bodies().resolve_record(id, stored).await;
        if !matches!(&read, Ok(Some(read)) if *read == record) {
            say(format!("{name} is not what was acknowledged: {read:?}"));
        }
    }
    check_runs(world, host, session, &say).await;
}

fn check_record(stored: &StoredRecord, record: &Record, live: &mut BTreeSet<RunId>, say: &dyn Fn(String)) {
    match record {
        Record::Message { run_id, ordinal, message } if *message != content::said(run_id, *ordinal) => {
            say(format!("{} says something else", stored.id));
        }
        Record::RunStarted(started) => {
            live.insert(started.run_id.clone());
        }
        Record::RunEnded(ended) => {
            live.remove(&ended.run_id);
        }
        Record::SessionStopped(_) if !live.is_empty() => {
            say(format!("record {} says that it has stopped, and {live:?} live", stored.seq));
        }
        _ => {}
    }
}

/// The logs and messages of its runs can be read and are what was written.
async fn check_runs(world: &World, host: &Member, session: &SessionHead, say: &dyn Fn(String)) {
    let query = ListRuns { thread_id: Some(session.thread_id.clone()), limit: 1000, ..ListRuns::default() };
    for run in world.store.list_runs(&query).await.unwrap_or_default() {
        let (id, run_id) = (&session.session_id, &run.run_id);
        if !run.status.is_terminal() {
            say(format!("{run_id} has not ended"));
        }
        let page = world.store.read(&run.tenant, run_id, Seq::START, usize::MAX, usize::MAX).await;
        let Ok(page) = page else {
            say(format!("the log of {run_id} cannot be read"));
            continue;
        };
        let (end, last) = (page.end, page.tail.0);
        let read = host.sessions.bodies().resolve_page(id, run_id, page, usize::MAX).await;
        if !read.missing.is_empty() {
            say(format!("{run_id} lacks {:?}", read.missing));
        }
        let seqs = read.value.events.iter().map(|event| event.seq.0);
        if end != LogEnd::Expired && !seqs.eq(1..=last) {
            say(format!("the log of {run_id} does not count up to {last}"));
        }
        for event in &read.value.events {
            let expected = content::event(run_id, &session.thread_id, event.seq.0, last);
            debug_assert_eq!(
                expected.kind.is_terminal(),
                event.seq.0 == last || expected.kind == EventKind::RunError
            );
            if event.json != expected.json {
                say(format!("event {} of {run_id} says something else", event.seq.0));
            }
        }
        let rows = world.store.run_messages(&run.tenant, run_id).await.unwrap_or_default();
        let read = host.sessions.bodies().resolve_messages(id, rows).await;
        if !read.missing.is_empty() || read.value.is_empty() {
            say(format!("of the {} messages of {run_id}, {:?} are missing", read.value.len(), read.missing));
        }
        for row in &read.value {
            if row.message != content::said(run_id, row.ordinal) {
                say(format!("message {} of {run_id} says something else", row.ordinal));
            }
        }
    }
}

/// Nothing is left of what was deleted, and nothing else to which nothing points.
async fn check_objects(world: &World, session: &SessionHead) {
    let pointers = world.store.pointers(&session.session_id).await.unwrap_or_default();
    let keys: BTreeSet<String> = pointers.into_iter().map(|pointer| pointer.key).collect();
    let say = |what: String| world.watch.say(format!("{} ({:?}): {what}", session.thread_id, session.state));
    if session.state == SessionState::Deleting {
        say("its deletion has not ended".to_owned());
    }
    let there = world.bucket.beneath(&format!("{}/", session.session_id.objects_prefix()));
    for (key, _) in &there {
        let foreign = world.foreign.contains(key) && session.state == SessionState::Active;
        if !keys.contains(key) && !foreign {
            say(format!("{} is left", short(key)));
        }
    }
    for key in keys {
        if !there.iter().any(|(found, _)| *found == key) {
            say(format!("{} is pointed to and not there", short(&key)));
        }
    }
}

/// What is not Outlast's is where it was, but for what lay in a session that was deleted.
fn check_foreign(world: &World) {
    for key in &world.foreign {
        let deleted = world.watch.was_deleted(key);
        if !deleted && world.bucket.get(key).is_none() {
            world.watch.say(format!("{} is gone", short(key)));
        }
    }
}

/// Of what was deleted nothing begins again, however late, and the attempt leaves nothing behind.
async fn check_closed(world: &World, host: &Member) {
    for session in sessions(world).await.into_iter().filter(|session| session.state == SessionState::Deleted)
    {
        let run = RunId::new("late").unwrap_or_else(|_| unreachable!("a plain id"));
        let append = AppendRecords {
            tenant: Tenant::default(),
            thread_id: session.thread_id.clone(),
            expected_tip: None,
            barrier: None,
            lease: None,
            pin: None,
            create: true,
            records: (0..6).map(|n| content::message_record(&run, n)).collect(),
        };
        match host.sessions.append(append).await {
            Err(AddError::Records(RecordsError::Refused(RecordsRefusal::SessionDeleted(_)))) => {}
            other => world.watch.say(format!("{} is deleted, and {other:?}", session.thread_id)),
        }
        check_objects(world, &session).await;
    }
}
