//! Stores in directories of their own, and processes that use them.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_core::decide::EndVerdict;
use outlast_core::event::{Chunk, EventKind, Origin};
use outlast_core::ledger::{Consistency, Record, Trigger, WorkspaceCheckpointed};
use outlast_core::run::{ClaimToken, EndReason, Status};
use outlast_core::{OwnerId, Seq, Tenant, ThreadId, WorkspaceRef};
use outlast_sqlite::{SqliteConfig, SqliteStore};
use outlast_store::conformance::Host;
use outlast_store::{
    Append, AppendRecords, Entropy, Finish, NewEvent, NewRecord, Ports, ReadRecords, SessionHead,
    SessionName, StoreError, StoredRecord, SystemEntropy,
};

/// A configuration as a process would have it.
pub fn config(data_dir: &Path, owner: &str) -> SqliteConfig {
    SqliteConfig::new(data_dir, OwnerId::new(owner).unwrap(), Ports::system())
}

pub fn try_open(data_dir: &Path, owner: &str) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(config(data_dir, owner))
}

/// A process with a store on the machine's own clock.
pub fn host(data_dir: &Path, owner: &str) -> Host {
    host_with(config(data_dir, owner))
}

pub fn host_with(config: SqliteConfig) -> Host {
    let owner = config.owner.clone();
    Host { owner, store: Arc::new(SqliteStore::open(config).unwrap()), tenant: Tenant::default() }
}

/// An append of one event of so many bytes.
pub fn append_of(token: &ClaimToken, tail: u64, bytes: usize) -> Append {
    let json = format!("{{\"type\":\"RAW\",\"event\":\"{}\"}}", "x".repeat(bytes));
    Append {
        token: token.clone(),
        expected_tail: Seq(tail),
        batch: SystemEntropy.nonce(),
        events: vec![NewEvent::new(Origin::Host, Chunk { kind: EventKind::Raw, json })],
        cursor: None,
        messages: Vec::new(),
        barrier: None,
        agent_session: None,
    }
}

/// The end of a run, as completed.
pub fn completion(token: &ClaimToken, tail: u64) -> Finish {
    let json = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#.to_owned();
    let event = NewEvent::new(Origin::Host, Chunk { kind: EventKind::RunFinished, json });
    Finish {
        append: Append { events: vec![event], ..append_of(token, tail, 0) },
        verdict: EndVerdict { status: Status::Completed, error: None, reason: EndReason::Exited },
        cancel: None,
        exit_code: Some(0),
        usage: Vec::new(),
    }
}

/// A record that belongs to no run.
pub fn checkpoint(id: &str) -> NewRecord {
    let made = WorkspaceCheckpointed {
        reference: WorkspaceRef::from_digest([7; 32]),
        consistency: Consistency::Quiescent,
        trigger: Trigger::Manual,
        run_id: None,
    };
    NewRecord::new(id, Record::WorkspaceCheckpointed(made))
}

/// Records for a thread's ledger, without any condition.
pub fn records(host: &Host, thread: &str, records: Vec<NewRecord>) -> AppendRecords {
    AppendRecords {
        tenant: host.tenant.clone(),
        thread_id: ThreadId::new(thread).unwrap(),
        expected_tip: None,
        barrier: None,
        lease: None,
        pin: None,
        create: true,
        records,
    }
}

/// The session of the thread, and its ledger, in which every record is in its place and as it was written.
pub async fn ledger(host: &Host, thread: &str) -> (SessionHead, Vec<StoredRecord>) {
    let name = SessionName::Thread(ThreadId::new(thread).unwrap());
    let head = host.store.session(&host.tenant, &name).await.unwrap().unwrap();
    let query = ReadRecords {
        session_id: head.session_id.clone(),
        after: 0,
        kinds: Vec::new(),
        max_records: usize::MAX,
        max_bytes: usize::MAX,
    };
    let page = host.store.read_records(&query).await.unwrap();
    assert!(page.records.iter().zip(1..).all(|(record, seq)| record.seq == seq));
    assert!(page.records.iter().all(StoredRecord::is_intact));
    assert_eq!((page.tip, head.tip), (page.records.len() as u64, page.tip));
    (head, page.records)
}

/// Waits until something holds.
pub async fn eventually(what: &str, within: Duration, mut holds: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !holds().await {
        assert!(start.elapsed() < within, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// This test binary again, as another process that runs one of its tests for us.
pub struct Process {
    pub child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

/// What the other process is told.
pub const TOLD: &str = "OUTLAST_TEST_TOLD";

impl Process {
    pub fn start(test: &str, told: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(TOLD, told)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Process { child, lines }
    }

    /// Waits for a line that begins so, and gives the rest of it.
    pub fn said(&mut self, beginning: &str) -> String {
        for line in self.lines.by_ref() {
            // The first line comes after what the test runner has begun to print.
            let line = line.unwrap();
            if let Some((_, rest)) = line.split_once(beginning) {
                return rest.to_owned();
            }
        }
        panic!("the process ended without saying {beginning:?}");
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
