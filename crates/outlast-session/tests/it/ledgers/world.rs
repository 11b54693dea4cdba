//! Sessions in memory, of which everything is told.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::FutureExt;
use outlast_core::decide::EndVerdict;
use outlast_core::event::{Chunk, Event, Origin, RUN_ACCEPTED};
use outlast_core::ledger::{
    Consistency, Record, RunStarted, SessionId, Trigger, WorkspaceCheckpointed, message_id,
};
use outlast_core::run::{ClaimToken, EndReason, LaunchSpec, OnDisconnect, SandboxSpec, Status};
use outlast_core::transcript::{Message, Role};
use outlast_core::{OwnerId, RunId, Seq, Tenant, ThreadId, WorkspaceRef};
use outlast_session::Sessions;
use outlast_session::collect::GcOptions;
use outlast_session::objects::Objects;
use outlast_store::conformance::ManualClock;
use outlast_store::{
    Accept, Accepted, Append, AppendRecords, Entropy, Finish, Ledger, Log, MemoryStore, NewEvent, NewMessage,
    NewRecord, Ports, ReadRecords, Runs, SessionHead, SessionName, StoredRecord, SystemEntropy,
};

use super::storage::Storage;
use super::told::Told;
use super::trouble::Trouble;

pub const HOUR: Duration = Duration::from_secs(3600);

/// What is larger is off-loaded here.
pub const OFFLOAD: usize = 2000;

pub fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(test)
}

pub fn thread(name: &str) -> ThreadId {
    ThreadId::new(name).unwrap()
}

pub fn run_id(name: &str) -> RunId {
    RunId::new(name).unwrap()
}

/// A text that is off-loaded.
pub fn large(what: &str) -> String {
    what.repeat(4 * OFFLOAD / what.len())
}

pub struct World {
    pub clock: Arc<ManualClock>,
    /// Without a look at what is told.
    pub store: MemoryStore,
    pub trouble: Arc<Trouble>,
    /// Without a look at what is told.
    pub bucket: Objects,
    pub sessions: Sessions,
    pub tenant: Tenant,
}

impl World {
    pub fn new() -> World {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
        let clock = Arc::new(ManualClock::new(wall, 50_000, "boot-1"));
        let ports = Ports { clock: clock.clone(), entropy: Arc::new(SystemEntropy) };
        let store = MemoryStore::for_tests(ports.clone());
        let trouble = Arc::new(Trouble::default());
        let inner = Arc::new(object_store::memory::InMemory::new());
        let told = Told { inner: store.clone(), trouble: trouble.clone() };
        let storage = Storage { inner: inner.clone(), trouble: trouble.clone() };
        let objects = Objects::of_store("told", Arc::new(storage));
        let owner = OwnerId::new("host").unwrap();
        let deployment = outlast_store::Store::deployment_id(&store).now_or_never().unwrap().unwrap();
        let sessions =
            Sessions::new(Arc::new(told), objects, ports, owner, &deployment).offload_above(OFFLOAD);
        World {
            clock,
            store,
            trouble,
            bucket: Objects::of_store("memory", inner),
            sessions,
            tenant: Tenant::default(),
        }
    }

    pub fn id(&self, name: &str) -> SessionId {
        self.sessions.id_of(&self.tenant, &thread(name))
    }

    pub async fn head(&self, name: &str) -> SessionHead {
        self.store.session(&self.tenant, &SessionName::Thread(thread(name))).await.unwrap().unwrap()
    }

    pub fn records(&self, name: &str, records: Vec<NewRecord>) -> AppendRecords {
        AppendRecords {
            tenant: self.tenant.clone(),
            thread_id: thread(name),
            expected_tip: None,
            barrier: None,
            lease: None,
            pin: None,
            create: true,
            records,
        }
    }

    /// Adds records, off-loaded where they are large.
    pub async fn add(&self, name: &str, records: Vec<NewRecord>) -> u64 {
        let append = self.records(name, records);
        self.sessions.append(append).await.unwrap().last().unwrap().seq
    }

    pub async fn read(&self, name: &str) -> Vec<StoredRecord> {
        let query = ReadRecords {
            session_id: self.head(name).await.session_id,
            after: 0,
            kinds: Vec::new(),
            max_records: usize::MAX,
            max_bytes: usize::MAX,
        };
        self.store.read_records(&query).await.unwrap().records
    }

    /// Every key beneath the session, in order.
    pub async fn keys(&self, name: &str) -> Vec<String> {
        let listed = self.bucket.list(&self.head(name).await.session_id.objects_prefix()).await.unwrap();
        listed.into_iter().map(|object| object.key).collect()
    }

    /// Puts an object of which no ledger tells; answers with its key.
    pub async fn orphan(&self, name: &str, digit: char) -> String {
        self.put(name, &digit.to_string().repeat(64)).await
    }

    pub async fn put(&self, name: &str, object: &str) -> String {
        let key = format!("{}/{object}", self.head(name).await.session_id.blobs_prefix());
        self.bucket.put(&key, Bytes::from_static(b"nobody's")).await.unwrap();
        key
    }

    /// What is there counts as old.
    pub fn age(&self) {
        self.clock.advance(2 * HOUR);
    }

    pub fn options(&self) -> GcOptions {
        GcOptions::default()
    }

    /// Has a run accepted and ended on the thread, with a large event and a large message.
    pub async fn turn(&self, name: &str, run: &str) {
        let token = self.start(name, run).await;
        let (id, session) = (run_id(run), self.id(name));
        let barrier = self.sessions.barrier(&self.tenant, &thread(name)).await.unwrap().unwrap();
        let event = Event::TextMessageContent { message_id: "m".into(), delta: large("event ").into() };
        let events = [NewEvent::new(Origin::Host, event.chunk()), ended(name, run)];
        let messages = [NewMessage::new(2, Message::text("m", Role::Assistant, large("answer ")))];
        let bodies = self.sessions.bodies();
        let append = Append {
            token,
            expected_tail: Seq(1),
            batch: SystemEntropy.nonce(),
            events: bodies.lighten_events(&session, &id, Seq(2), &events, None).await.unwrap(),
            cursor: None,
            messages: bodies.lighten_messages(&session, &id, &messages, None).await.unwrap(),
            barrier: Some(barrier),
            agent_session: None,
        };
        let finish = Finish {
            append,
            verdict: EndVerdict { status: Status::Completed, error: None, reason: EndReason::Exited },
            cancel: None,
            exit_code: Some(0),
            usage: Vec::new(),
        };
        self.store.finish(finish).await.unwrap();
    }

    /// Has a run accepted on the thread.
    pub async fn start(&self, name: &str, run: &str) -> ClaimToken {
        let sandbox = SandboxSpec { provider: "local".to_owned(), ..SandboxSpec::default() };
        let accept = Accept {
            tenant: self.tenant.clone(),
            run_id: run_id(run),
            thread_id: thread(name),
            thread_chosen: true,
            spec: LaunchSpec::command(vec!["true".to_owned()], sandbox),
            digest: "digest".to_owned(),
            owner: OwnerId::new("host").unwrap(),
            nonce: SystemEntropy.nonce(),
            lease: HOUR,
            detached_ttl: None,
            on_disconnect: OnDisconnect::Detach,
            messages: NewMessage::input(vec![Message::text("u", Role::User, "Do it")]),
            barrier: None,
            events: vec![Event::Custom { name: RUN_ACCEPTED.into(), value: serde_json::json!({}) }.chunk()],
        };
        match self.store.accept(accept).await.unwrap() {
            Accepted::New(claimed) => claimed.token,
            Accepted::Existing(run) => panic!("{:?} exists", run.run_id),
        }
    }
}

fn ended(name: &str, run: &str) -> NewEvent {
    let event: Chunk = Event::RunFinished {
        thread_id: name.to_owned().into(),
        run_id: run.to_owned().into(),
        result: None,
        usage: Vec::new().into(),
        metadata: None,
    }
    .chunk();
    NewEvent::new(Origin::Host, event)
}

pub fn message(run: &str, ordinal: i64, text: &str) -> NewRecord {
    let message = Message::text(format!("m{ordinal}"), Role::Assistant, text);
    let record = Record::Message { run_id: run_id(run), ordinal, message };
    NewRecord::new(message_id(&run_id(run), ordinal), record)
}

pub fn checkpoint(id: &str, content: u8, run: Option<&str>) -> NewRecord {
    let record = Record::WorkspaceCheckpointed(WorkspaceCheckpointed {
        reference: WorkspaceRef::from_digest([content; 32]),
        consistency: Consistency::Quiescent,
        trigger: Trigger::Manual,
        run_id: run.map(run_id),
    });
    NewRecord::new(id, record)
}

pub fn started(run: &str) -> NewRecord {
    let record = Record::RunStarted(RunStarted {
        run_id: run_id(run),
        agent: "agent".to_owned(),
        model: None,
        title: Some("Do it".to_owned()),
    });
    NewRecord::new(format!("run_started/{run}"), record)
}
