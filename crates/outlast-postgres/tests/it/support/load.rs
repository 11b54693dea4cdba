//! Writers that write all the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use outlast_core::decide::EndVerdict;
use outlast_core::event::{Chunk, EventKind, Origin};
use outlast_core::run::{ClaimToken, EndReason, Status};
use outlast_core::{RunId, Seq};
use outlast_store::conformance::Host;
use outlast_store::{Accept, Append, Entropy, Finish, NewEvent, SystemEntropy};
use tokio::task::JoinHandle;

use super::hosts::settled;

/// An append of one event that says its number.
pub fn numbered(token: &ClaimToken, tail: u64) -> Append {
    let json = format!("{{\"type\":\"RAW\",\"event\":{tail}}}");
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

/// An end of the run.
pub fn ending(token: &ClaimToken, tail: u64) -> Finish {
    let json = "{\"type\":\"RUN_FINISHED\"}".to_owned();
    let chunk = Chunk { kind: EventKind::RunFinished, json };
    Finish {
        append: Append { events: vec![NewEvent::new(Origin::Host, chunk)], ..numbered(token, tail) },
        verdict: EndVerdict { status: Status::Completed, error: None, reason: EndReason::Exited },
        cancel: None,
        exit_code: Some(0),
        usage: Vec::new(),
    }
}

/// Asserts that the log of the run is its first event and then so many of [`numbered`], each once and in order.
async fn check_numbered(host: &Host, run: &str, tail: u64) {
    let log = host.log(run).await;
    assert_eq!(log.len() as u64, tail, "{run}: nothing lost, nothing doubled");
    for (event, seq) in log.iter().zip(1..) {
        assert_eq!(event.seq, Seq(seq));
        if seq > 1 {
            assert_eq!(event.json, format!("{{\"type\":\"RAW\",\"event\":{}}}", seq - 1), "{run}");
        }
    }
}

/// Runs that are written to by a task each, one event after the other.
pub struct Load {
    stop: Arc<AtomicBool>,
    /// How many appends were answered.
    written: Arc<AtomicU64>,
    /// How often the store was away.
    away: Arc<AtomicU64>,
    writers: Vec<JoinHandle<(String, u64)>>,
    /// What is written with.
    pub claims: Vec<(RunId, u64)>,
}

impl Load {
    /// Accepts so many runs, named after the prefix, and begins.
    pub async fn begin(host: &Host, prefix: &str, runs: usize) -> Load {
        Load::begin_with(host, prefix, runs, Duration::from_secs(600)).await
    }

    /// With leases of this length.
    pub async fn begin_with(host: &Host, prefix: &str, runs: usize, lease: Duration) -> Load {
        let (stop, written, away) = (Arc::default(), Arc::default(), Arc::default());
        let mut load = Load { stop, written, away, writers: Vec::new(), claims: Vec::new() };
        for n in 0..runs {
            let run = format!("{prefix}{n}");
            let token = host.accept_with(Accept { lease, ..host.request(&run, &run) }).await.token;
            load.claims.push((token.run_id.clone(), token.epoch));
            load.write(host.clone(), run, token);
        }
        load
    }

    fn write(&mut self, host: Host, run: String, token: ClaimToken) {
        let (stop, written, away) = (self.stop.clone(), self.written.clone(), self.away.clone());
        self.writers.push(tokio::spawn(async move {
            let mut tail = 1;
            while !stop.load(Ordering::SeqCst) {
                let append = numbered(&token, tail);
                // The same append until it is answered: that settles what became of those before.
                let appended = loop {
                    if let Some(appended) = settled(host.store.append(append.clone()).await) {
                        break appended;
                    }
                    away.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                };
                assert_eq!(appended.tail, Seq(tail + 1));
                tail += 1;
                written.fetch_add(1, Ordering::SeqCst);
            }
            (run, tail)
        }));
    }

    pub fn written(&self) -> u64 {
        self.written.load(Ordering::SeqCst)
    }

    pub fn away(&self) -> u64 {
        self.away.load(Ordering::SeqCst)
    }

    /// Stops, and asserts that every append has taken effect once. Answers with how many there were.
    pub async fn check(self, host: &Host) -> u64 {
        self.stop.store(true, Ordering::SeqCst);
        let mut appends = 0;
        for writer in self.writers {
            let (run, tail) = writer.await.expect("it ends");
            check_numbered(host, &run, tail).await;
            appends += tail - 1;
        }
        appends
    }
}
