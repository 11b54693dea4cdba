//! What cases are made of: hosts, requests, events.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::decide::EndVerdict;
use outlast_core::event::{Chunk, Event, EventKind, Origin, RUN_ACCEPTED};
use outlast_core::run::{
    CancelReason, ClaimToken, EndReason, LaunchSpec, OnDisconnect, Purpose, RunError, RunRecord, SandboxSpec,
    Status, Workspace,
};
use outlast_core::transcript::{Message, Role};
use outlast_core::{ErrorCode, InstanceId, OwnerId, RunId, Seq, Tenant, ThreadId};

use super::{Backend, ManualClock};
use crate::{
    Accept, Accepted, Append, Appended, BeginReclaim, CancelOutcome, Claim, Claimed, Entropy, Finish,
    Finished, Instance, InstanceState, MessageRow, NewEvent, Ports, Renewed, Store, StoredEvent,
    SystemEntropy,
};

/// How long the leases of cases run.
pub(super) const LEASE: Duration = Duration::from_secs(10);

/// A backend, and the time there.
pub struct World {
    /// What is tested.
    pub backend: Box<dyn Backend>,
    /// The clock of every host that [`World::host`] makes.
    pub clock: Arc<ManualClock>,
}

impl World {
    /// An empty backend on a day in 2023.
    pub fn new(backend: Box<dyn Backend>) -> Self {
        World { backend, clock: Arc::new(ManualClock::new(1_700_000_000_000, 50_000, "boot-1")) }
    }

    /// A process with this owner id.
    pub async fn host(&self, owner: &str) -> Host {
        self.host_with(owner, self.clock.clone()).await
    }

    /// A process with a clock of its own.
    pub async fn host_with(&self, owner: &str, clock: Arc<ManualClock>) -> Host {
        let owner = OwnerId::new(owner).expect("an owner id");
        let ports = Ports { clock, entropy: Arc::new(SystemEntropy) };
        let store = self.backend.open(owner.clone(), ports).await;
        Host { owner, store, tenant: Tenant::default() }
    }

    /// Lets time pass.
    pub async fn pass(&self, time: Duration) {
        self.backend.pass(&self.clock, time).await;
    }
}

/// One process that uses the store.
#[derive(Clone)]
pub struct Host {
    /// Its owner id.
    pub owner: OwnerId,
    /// Its store.
    pub store: Arc<dyn Store>,
    /// For whom it works.
    pub tenant: Tenant,
}

/// All that the store knows of a run; two of them are equal exactly where nothing was written in between.
#[derive(Debug, PartialEq)]
pub(super) struct Snapshot {
    record: RunRecord,
    events: Vec<StoredEvent>,
    messages: Vec<MessageRow>,
}

impl Host {
    /// A request for a run of a simple agent, with one event and no message.
    pub fn request(&self, run: &str, thread: &str) -> Accept {
        Accept {
            tenant: self.tenant.clone(),
            run_id: run_id(run),
            thread_id: thread_id(thread),
            thread_chosen: true,
            spec: spec(),
            digest: "digest".to_owned(),
            owner: self.owner.clone(),
            nonce: SystemEntropy.nonce(),
            lease: LEASE,
            detached_ttl: Some(Duration::from_secs(86_400)),
            on_disconnect: OnDisconnect::Detach,
            messages: Vec::new(),
            barrier: None,
            events: vec![accepted_event()],
        }
    }

    /// Accepts a new run.
    pub async fn accept(&self, run: &str, thread: &str) -> Claimed {
        self.accept_with(self.request(run, thread)).await
    }

    /// Accepts a new run.
    pub async fn accept_with(&self, request: Accept) -> Claimed {
        match self.store.accept(request).await.expect("the run is accepted") {
            Accepted::New(claimed) => *claimed,
            Accepted::Existing(run) => panic!("run {:?} exists", run.run_id),
        }
    }

    /// The run's record.
    pub async fn record(&self, run: &str) -> RunRecord {
        self.store.run(&self.tenant, &run_id(run)).await.expect("the store works").expect("the run exists")
    }

    /// The whole log.
    pub async fn log(&self, run: &str) -> Vec<StoredEvent> {
        let page = self.store.read(&self.tenant, &run_id(run), Seq::START, usize::MAX, usize::MAX).await;
        page.expect("the log can be read").events
    }

    pub(super) async fn snapshot(&self, run: &str) -> Snapshot {
        Snapshot {
            record: self.record(run).await,
            events: self.log(run).await,
            messages: self
                .store
                .run_messages(&self.tenant, &run_id(run))
                .await
                .expect("messages can be read"),
        }
    }

    /// Claims the run.
    pub async fn claim(&self, run: &str, purpose: Purpose) -> Result<Claimed, crate::ClaimError> {
        self.store.claim(self.wish(run, purpose)).await
    }

    /// Records a person's Stop.
    pub async fn stop(&self, run: &str) -> CancelOutcome {
        let stopped = self.store.request_cancel(&self.tenant, &run_id(run), CancelReason::User, None).await;
        stopped.expect("recorded")
    }

    /// A wish to destroy an instance.
    pub fn reclaim(&self, id: &str, forced: bool) -> BeginReclaim {
        BeginReclaim { instance_id: instance_id(id), owner: self.owner.clone(), lease: LEASE, forced }
    }

    /// A wish for a claim.
    pub fn wish(&self, run: &str, purpose: Purpose) -> Claim {
        Claim {
            run_id: run_id(run),
            owner: self.owner.clone(),
            nonce: SystemEntropy.nonce(),
            purpose,
            lease: LEASE,
            detached_for: None,
        }
    }

    /// Renews these claims.
    pub async fn renew(&self, tokens: &[&ClaimToken]) -> Vec<Renewed> {
        let claims: Vec<_> = tokens.iter().map(|token| (token.run_id.clone(), token.epoch)).collect();
        self.store.renew(&self.owner, &claims, LEASE).await.expect("renewed")
    }

    /// Appends one event for each text.
    pub async fn append(
        &self,
        token: &ClaimToken,
        tail: u64,
        texts: &[&str],
    ) -> Result<Appended, crate::AppendError> {
        self.store.append(append(token, tail, texts)).await
    }

    /// Ends the run as completed.
    pub async fn complete(&self, token: &ClaimToken, tail: u64) -> Result<Finished, crate::FinishError> {
        self.store.finish(completion(token, tail)).await
    }
}

pub(super) fn run_id(text: &str) -> RunId {
    RunId::new(text).expect("a run id")
}

pub(super) fn thread_id(text: &str) -> ThreadId {
    ThreadId::new(text).expect("a thread id")
}

pub(super) fn instance_id(text: &str) -> InstanceId {
    InstanceId::new(text).expect("an instance id")
}

pub(super) fn spec() -> LaunchSpec {
    LaunchSpec {
        agent: "demo".to_owned(),
        kind: "command".to_owned(),
        argv: vec!["true".to_owned()],
        model: Some("m".to_owned()),
        prompt: Some("Hello\u{1F980}".to_owned()),
        prompt_on_stdin: true,
        env: [("A".to_owned(), "1".to_owned())].into(),
        needed_env: vec!["KEY".to_owned()],
        cwd: None,
        workspace: None,
        sandbox: SandboxSpec { provider: "local".to_owned(), ..SandboxSpec::default() },
    }
}

pub(super) fn in_workspace(request: Accept, path: &str, shared: bool) -> Accept {
    let workspace = Some(Workspace { path: path.to_owned(), shared });
    Accept { spec: LaunchSpec { workspace, ..request.spec }, ..request }
}

pub(super) fn accepted_event() -> Chunk {
    Event::Custom { name: RUN_ACCEPTED.into(), value: serde_json::json!({}) }.chunk()
}

pub(super) fn text_event(text: &str) -> NewEvent {
    let event = Event::TextMessageContent { message_id: "m".into(), delta: text.into() };
    NewEvent::new(Origin::Host, event.chunk())
}

pub(super) fn terminal_event() -> NewEvent {
    let event = Event::RunFinished {
        thread_id: "t".into(),
        run_id: "r".into(),
        result: None,
        usage: Vec::new().into(),
        metadata: None,
    };
    NewEvent::new(Origin::Host, event.chunk())
}

pub(super) fn is_terminal(event: &StoredEvent) -> bool {
    [EventKind::RunFinished, EventKind::RunError].iter().any(|kind| event.json.contains(kind.as_str()))
}

pub(super) fn append(token: &ClaimToken, tail: u64, texts: &[&str]) -> Append {
    Append {
        token: token.clone(),
        expected_tail: Seq(tail),
        batch: SystemEntropy.nonce(),
        events: texts.iter().map(|text| text_event(text)).collect(),
        cursor: None,
        messages: Vec::new(),
        barrier: None,
        agent_session: None,
    }
}

pub(super) fn completion(token: &ClaimToken, tail: u64) -> Finish {
    Finish {
        append: Append { events: vec![text_event("bye"), terminal_event()], ..append(token, tail, &[]) },
        verdict: EndVerdict { status: Status::Completed, error: None, reason: EndReason::Exited },
        cancel: None,
        exit_code: Some(0),
        usage: Vec::new(),
    }
}

pub(super) fn abortion(token: &ClaimToken, tail: u64, cancel: CancelReason) -> Finish {
    Finish {
        verdict: EndVerdict {
            status: Status::Aborted,
            error: Some(RunError::new(ErrorCode::Aborted, "stopped")),
            reason: EndReason::Cancelled,
        },
        cancel: Some(cancel),
        exit_code: None,
        ..completion(token, tail)
    }
}

pub(super) fn said(id: &str, role: Role, text: &str) -> Message {
    Message::text(id, role, text)
}

pub(super) fn instance(id: &str, key: &str, machine: Option<&str>, created_at: u64) -> Instance {
    Instance {
        instance_id: instance_id(id),
        sandbox_key: key.to_owned(),
        provider: "local".to_owned(),
        machine: machine.map(ToOwned::to_owned),
        state: InstanceState::Creating,
        created_at,
        tenant: Tenant::default(),
        thread_id: Some(thread_id("t")),
        lent: false,
        keep_alive: Some(1_000),
        reclaim: None,
    }
}

/// Runs all at once and gives what they answered.
pub(super) async fn all_at_once<F, T>(tasks: impl IntoIterator<Item = F>) -> Vec<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let tasks: Vec<_> = tasks.into_iter().collect();
    let barrier = Arc::new(tokio::sync::Barrier::new(tasks.len()));
    let running: Vec<_> = tasks
        .into_iter()
        .map(|task| {
            let barrier = barrier.clone();
            tokio::spawn(async move {
                barrier.wait().await;
                task.await
            })
        })
        .collect();
    let mut answers = Vec::new();
    for task in running {
        answers.push(task.await.expect("a task ends"));
    }
    answers
}
