//! Whole runs, as the runtime makes them, but for the agent.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::decide::{AcceptRefusal, ClaimRefusal, EndVerdict, RecordsRefusal};
use outlast_core::run::{
    ClaimToken, EndReason, LaunchSpec, OnDisconnect, Purpose, SandboxSpec, Status, request_digest,
};
use outlast_core::{Nonce, RunId, Seq, Tenant, ThreadId};
use outlast_session::objects::ObjectsError;
use outlast_session::put_again;
use outlast_store::{
    Accept, AcceptError, Accepted, Append, AppendError, Claim, ClaimError, Finish, FinishError, Log, Runs,
    StoreError,
};

use super::content;
use super::hosts::Member;
use super::world::World;

/// How long claims run.
const LEASE: Duration = Duration::from_secs(10);

/// A turn that somebody wants.
#[derive(Debug, Clone)]
struct Turn {
    run: RunId,
    thread: ThreadId,
    /// The number of its last event.
    last: u64,
}

/// Why a host has not done what it was asked.
#[derive(Debug)]
enum Stuck {
    Over,
    Deleted,
    Again(String),
}

impl From<StoreError> for Stuck {
    fn from(error: StoreError) -> Stuck {
        Stuck::Again(error.to_string())
    }
}

impl From<ObjectsError> for Stuck {
    fn from(error: ObjectsError) -> Stuck {
        Stuck::Again(error.to_string())
    }
}

/// Has a run accepted and driven to its end, by whichever hosts are there.
pub(super) async fn turn(world: Arc<World>, n: usize) {
    let run = RunId::new(format!("run-{n}")).unwrap_or_else(|_| unreachable!("a plain id"));
    let place = n % world.plan.threads;
    let last = world.dice.between(3, 12);
    world.pause(1000, 100_000).await;
    let mut turn = Turn { run, thread: world.thread(place), last };
    let mut accepted = false;
    loop {
        if let Some(host) = world.any_host() {
            let asked = turn.clone();
            let working = tokio::spawn(async move {
                match accepted {
                    false => accept(&host, &asked).await.map(|()| false),
                    true => drive(&host, &asked).await.map(|()| true),
                }
            });
            let patience = Duration::from_millis(world.dice.between(2000, 30_000));
            match world.within(patience, working).await {
                Some(Ok(Ok(false))) => accepted = true,
                Some(Ok(Ok(true) | Err(Stuck::Over))) => {
                    world.deeds("runs", 1);
                    return;
                }
                Some(Ok(Err(Stuck::Deleted))) => {
                    world.next_thread(place, &turn.thread);
                    turn.thread = world.thread(place);
                }
                Some(Ok(Err(Stuck::Again(why)))) => world.history.note(format!("turn {n}: {why}")),
                Some(Err(error)) => world.watch.say(format!("a run panics: {error}")),
                None => world.history.note(format!("turn {n}: no answer")),
            }
        }
        world.pause(200, 6000).await;
    }
}

/// As the runtime's `start`: bodies first, again where a collection has begun.
async fn accept(host: &Member, turn: &Turn) -> Result<(), Stuck> {
    let sandbox = SandboxSpec { provider: "simulated".to_owned(), ..SandboxSpec::default() };
    let spec = LaunchSpec::command(vec!["agent".to_owned()], sandbox);
    let input = [content::new_message(&turn.run, -2), content::new_message(&turn.run, -1)];
    let mut request = Accept {
        tenant: Tenant::default(),
        run_id: turn.run.clone(),
        thread_id: turn.thread.clone(),
        thread_chosen: true,
        digest: request_digest(&spec),
        spec,
        owner: host.owner.clone(),
        nonce: host.ports.entropy.nonce(),
        lease: LEASE,
        detached_ttl: None,
        on_disconnect: OnDisconnect::Detach,
        messages: Vec::new(),
        barrier: None,
        events: vec![content::event(&turn.run, &turn.thread, 1, turn.last)],
    };
    let session = host.sessions.id_of(&request.tenant, &turn.thread);
    let mut salt = None;
    loop {
        let Some(barrier) = host.sessions.barrier(&request.tenant, &turn.thread).await? else {
            return Err(Stuck::Deleted);
        };
        let bodies = host.sessions.bodies();
        request.messages = bodies.lighten_messages(&session, &turn.run, &input, salt.as_ref()).await?;
        request.barrier = Some(barrier);
        match host.store.accept(request.clone()).await {
            Ok(Accepted::New(_) | Accepted::Existing(_)) => return Ok(()),
            Err(AcceptError::Bodies(RecordsRefusal::SessionDeleted(_)))
            | Err(AcceptError::Refused(AcceptRefusal::ThreadDeleted { .. })) => return Err(Stuck::Deleted),
            Err(AcceptError::Refused(AcceptRefusal::RunIdConflict { .. })) => return Err(Stuck::Over),
            Err(AcceptError::Refused(refusal)) => return Err(Stuck::Again(refusal.to_string())),
            Err(AcceptError::Bodies(refusal)) => again(host, refusal, &mut salt)?,
            Err(AcceptError::Store(error)) => return Err(error.into()),
        }
    }
}

fn again(host: &Member, refusal: RecordsRefusal, salt: &mut Option<Nonce>) -> Result<(), Stuck> {
    if !put_again(&refusal) {
        return Err(Stuck::Again(refusal.to_string()));
    }
    if let RecordsRefusal::Condemned { .. } = refusal {
        *salt = Some(host.ports.entropy.nonce());
    }
    Ok(())
}

/// As the runtime's driver: claims, appends, finishes.
async fn drive(host: &Member, turn: &Turn) -> Result<(), Stuck> {
    let claim = Claim {
        run_id: turn.run.clone(),
        owner: host.owner.clone(),
        nonce: host.ports.entropy.nonce(),
        purpose: Purpose::Drive,
        lease: LEASE,
        detached_for: None,
    };
    let claimed = match host.store.claim(claim).await {
        Ok(claimed) => claimed,
        Err(ClaimError::Refused(ClaimRefusal::TerminalRun(_) | ClaimRefusal::RunNotFound(_))) => {
            return Err(Stuck::Over);
        }
        Err(error) => return Err(Stuck::Again(error.to_string())),
    };
    let mut tail = claimed.run.tail;
    loop {
        host.ports.clock.sleep(Duration::from_millis(700)).await;
        let to = (tail + 2).min(turn.last);
        write(host, turn, &claimed.token, tail, to).await?;
        if to == turn.last {
            return Ok(());
        }
        tail = to;
    }
}

/// One append, or the end.
async fn write(host: &Member, turn: &Turn, token: &ClaimToken, tail: u64, to: u64) -> Result<(), Stuck> {
    let (run, thread) = (&turn.run, &turn.thread);
    let events: Vec<_> = (tail + 1..=to).map(|seq| content::new_event(run, thread, seq, turn.last)).collect();
    let messages = [content::new_message(run, i64::try_from(tail + 1).unwrap_or(i64::MAX))];
    let session = host.sessions.id_of(&Tenant::default(), thread);
    let batch = host.ports.entropy.nonce();
    let (mut salt, mut tries) = (None, 0);
    loop {
        let Some(barrier) = host.sessions.barrier(&Tenant::default(), thread).await? else {
            return Err(Stuck::Deleted);
        };
        let bodies = host.sessions.bodies();
        let append = Append {
            token: token.clone(),
            expected_tail: Seq(tail),
            batch: batch.clone(),
            events: bodies.lighten_events(&session, run, Seq(tail + 1), &events, salt.as_ref()).await?,
            cursor: None,
            messages: bodies.lighten_messages(&session, run, &messages, salt.as_ref()).await?,
            barrier: Some(barrier),
            agent_session: None,
        };
        let refusal = if to == turn.last {
            match host.store.finish(ended(append)).await {
                Ok(_) => return Ok(()),
                Err(FinishError::Bodies(refusal)) => Some(refusal),
                Err(FinishError::Store(_)) => None,
                Err(error) => return Err(Stuck::Again(error.to_string())),
            }
        } else {
            match host.store.append(append).await {
                Ok(_) => return Ok(()),
                Err(AppendError::Bodies(refusal)) => Some(refusal),
                Err(AppendError::Store(_)) => None,
                Err(error) => return Err(Stuck::Again(error.to_string())),
            }
        };
        match refusal {
            Some(refusal) => again(host, refusal, &mut salt)?,
            None => host.ports.clock.sleep(Duration::from_millis(400)).await,
        }
        tries += 1;
        if tries > 20 {
            return Err(Stuck::Again("collections never end".to_owned()));
        }
    }
}

fn ended(append: Append) -> Finish {
    Finish {
        append,
        verdict: EndVerdict { status: Status::Completed, error: None, reason: EndReason::Exited },
        cancel: None,
        exit_code: Some(0),
        usage: Vec::new(),
    }
}
