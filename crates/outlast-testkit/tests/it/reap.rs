//! The sweep with steps of a test's own, over many runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::decide::EndVerdict;
use outlast_core::event::{Event, Origin};
use outlast_core::run::{CancelReason, EndReason, LaunchSpec, OnDisconnect, RunRecord, SandboxSpec, Status};
use outlast_core::{OwnerId, RunId, Seq, Tenant, ThreadId};
use outlast_runtime::{
    Driven, Environment, Host, HostConfig, Notices, Options, ReapClaim, ReapOptions, ReapOutcome, ReapSteps,
    RunProbe,
};
use outlast_sandbox::{LocalConfig, LocalProvider, ShimProgram};
use outlast_session::objects::Objects;
use outlast_store::{
    Accept, Accepted, Append, Entropy, Finish, Log, MemoryStore, NewEvent, Ports, PresenceUntil, Runs,
    SystemEntropy,
};

/// A host on a store that it shares with the test, and a directory for sandboxes that nobody makes.
struct Stage {
    store: MemoryStore,
    host: Host,
    _dir: tempfile::TempDir,
}

impl Stage {
    fn new() -> Stage {
        let ports = Ports::system();
        let store = MemoryStore::new(ports.clone());
        let dir = tempfile::tempdir().expect("directory");
        let provider = LocalProvider::new(LocalConfig {
            root: dir.path().join("sandboxes"),
            shim: ShimProgram { program: "/nonexistent".into(), args: Vec::new() },
            ports: ports.clone(),
        })
        .expect("provider");
        let host = Host::new(HostConfig {
            owner: OwnerId::new("sweeper").expect("id"),
            store: Arc::new(store.clone()),
            provider: Arc::new(provider),
            objects: Objects::in_memory(),
            agents: outlast_agents::agent,
            ports,
            environment: Environment::of([]),
            tenant: Tenant::default(),
            options: Options::default(),
            notices: Notices::new(|_| {}),
        });
        Stage { store, host, _dir: dir }
    }

    /// A run whose producer has gone.
    async fn left(&self, run: &str, ttl: Option<Duration>) {
        let accepted = Event::Custom { name: "run.accepted".into(), value: serde_json::json!({}) }.chunk();
        let request = Accept {
            tenant: Tenant::default(),
            run_id: run_id(run),
            thread_id: ThreadId::new(run).expect("id"),
            thread_chosen: true,
            spec: LaunchSpec::command(vec!["true".to_owned()], SandboxSpec::default()),
            digest: String::new(),
            owner: OwnerId::new("gone").expect("id"),
            nonce: SystemEntropy.nonce(),
            lease: Duration::ZERO,
            detached_ttl: ttl,
            on_disconnect: OnDisconnect::Detach,
            messages: Vec::new(),
            barrier: None,
            events: vec![accepted],
        };
        assert!(matches!(self.store.accept(request).await, Ok(Accepted::New(_))));
    }

    async fn run(&self, run: &str) -> RunRecord {
        self.store.run(&Tenant::default(), &run_id(run)).await.expect("answered").expect("there")
    }
}

fn run_id(text: &str) -> RunId {
    RunId::new(text).expect("id")
}

fn options(steps: impl ReapSteps + 'static) -> ReapOptions {
    ReapOptions { steps: Arc::new(steps), run_budget: Duration::from_millis(50), ..ReapOptions::default() }
}

/// Ends the run as completed.
async fn complete(host: &Host, claim: &ReapClaim) -> Driven {
    let run = claim.run();
    let event = Event::RunFinished {
        thread_id: run.thread_id.as_str().into(),
        run_id: run.run_id.as_str().into(),
        result: None,
        usage: Vec::new().into(),
        metadata: None,
    };
    let finish = Finish {
        append: Append {
            token: claim.token().clone(),
            expected_tail: Seq(run.tail),
            batch: SystemEntropy.nonce(),
            events: vec![NewEvent::new(Origin::Host, event.chunk())],
            cursor: None,
            messages: Vec::new(),
            barrier: None,
            agent_session: None,
        },
        verdict: EndVerdict { status: Status::Completed, error: None, reason: EndReason::Exited },
        cancel: None,
        exit_code: Some(0),
        usage: Vec::new(),
    };
    match host.store().finish(finish).await {
        Ok(finished) => Driven::Ended(Box::new(finished.run)),
        Err(error) => panic!("{error}"),
    }
}

/// Runs whose number ends with 0 have ended, the others work.
#[derive(Debug, Default)]
struct EveryTenth {
    probed: AtomicUsize,
}

#[async_trait]
impl ReapSteps for EveryTenth {
    async fn probe(&self, _: &Host, run: &RunRecord) -> RunProbe {
        self.probed.fetch_add(1, Ordering::SeqCst);
        if run.run_id.as_str().ends_with('0') {
            RunProbe::Finished { exit_code: 0 }
        } else {
            RunProbe::Producing
        }
    }

    async fn drive(&self, host: &Host, claim: ReapClaim) -> Driven {
        complete(host, &claim).await
    }
}

/// The finished among ten thousand are not starved by those that work, however few a sweep may drive; none of the others
/// is touched.
#[tokio::test]
async fn ten_thousand_runs() {
    let stage = Stage::new();
    for n in 0..10_000 {
        stage.left(&format!("run-{n:05}"), Some(Duration::from_secs(3600))).await;
    }
    let before = stage.run("run-04321").await;
    let steps = Arc::new(EveryTenth::default());
    let options = ReapOptions { max_runs: 200, steps: steps.clone(), ..ReapOptions::default() };
    let mut finalized = 0;
    for sweep in 0..5 {
        let result = stage.host.reap_detached_runs(&options).await;
        assert_eq!(result.error, None);
        assert_eq!(result.count(ReapOutcome::Finalized), 200, "sweep {sweep}");
        assert!(result.considered <= 2_300, "a sweep stops when it may drive no more: {}", result.considered);
        finalized += result.count(ReapOutcome::Finalized);
    }
    assert_eq!(finalized, 1_000);
    let last = stage.host.reap_detached_runs(&options).await;
    assert_eq!((last.considered, last.count(ReapOutcome::Producing)), (9_000, 9_000));
    assert!(steps.probed.load(Ordering::SeqCst) < 25_000, "nobody is asked again and again");
    assert_eq!(stage.run("run-04321").await, before);
    assert_eq!(stage.run("run-04320").await.status, Status::Completed);
}

/// A time limit stops the sweep; the next one goes on where it stopped.
#[tokio::test]
async fn a_limited_sweep_is_gone_on_with() {
    let stage = Stage::new();
    for n in 0..600 {
        stage.left(&format!("run-{n:03}"), None).await;
    }
    let steps = Arc::new(EveryTenth::default());
    let limited = ReapOptions { max_runs: 7, steps, ..ReapOptions::default() };
    let mut finalized = 0;
    for _ in 0..9 {
        finalized += stage.host.reap_detached_runs(&limited).await.count(ReapOutcome::Finalized);
    }
    assert_eq!(finalized, 60, "9 times 7 are enough for all of them, since no sweep begins anew");
    let nothing = ReapOptions { time_limit: Some(Duration::ZERO), ..limited };
    assert_eq!(stage.host.reap_detached_runs(&nothing).await.considered, 0);
}

/// A viewer comes back while the sweep is under way: after the run was listed, before it is claimed or cancelled.
#[derive(Debug)]
struct ComesBack(MemoryStore);

#[async_trait]
impl ReapSteps for ComesBack {
    async fn probe(&self, host: &Host, _: &RunRecord) -> RunProbe {
        for run in ["finished", "overdue"] {
            let watch = PresenceUntil::For(Duration::from_secs(60));
            self.0.presence(&run_id(run), host.owner(), watch).await.expect("said");
        }
        RunProbe::Finished { exit_code: 0 }
    }

    async fn drive(&self, _: &Host, _: ReapClaim) -> Driven {
        panic!("the viewer wins")
    }
}

#[tokio::test]
async fn a_viewer_who_comes_back_wins() {
    let stage = Stage::new();
    stage.left("finished", Some(Duration::from_secs(3600))).await;
    stage.left("overdue", Some(Duration::ZERO)).await;
    let result = stage.host.reap_detached_runs(&options(ComesBack(stage.store.clone()))).await;
    assert_eq!((result.considered, result.count(ReapOutcome::NotClaimed)), (2, 2), "{result:?}");
    for entry in &result.runs {
        assert_eq!(entry.error.as_ref().expect("why").code.as_str(), "superseded");
    }
    for run in ["finished", "overdue"] {
        let run = stage.run(run).await;
        assert_eq!((run.cancel_requested, run.driver_epoch, run.status), (None, 1, Status::Running));
    }
}

/// A drive that never ends and adds nothing to the log.
#[derive(Debug)]
struct Stuck;

#[async_trait]
impl ReapSteps for Stuck {
    async fn probe(&self, _: &Host, _: &RunRecord) -> RunProbe {
        RunProbe::Finished { exit_code: 0 }
    }

    async fn drive(&self, _: &Host, claim: ReapClaim) -> Driven {
        let _held = claim;
        std::future::pending().await
    }
}

/// Left to the next sweep twice, and ended without its rest the third time.
#[tokio::test]
async fn no_progress() {
    let stage = Stage::new();
    stage.left("r", None).await;
    for time in 1..=2 {
        let result = stage.host.reap_detached_runs(&options(Stuck)).await;
        assert_eq!(result.count(ReapOutcome::BudgetExceeded), 1);
        assert!(!result.runs[0].terminalized_anyway && !result.has_failed());
        let run = stage.run("r").await;
        assert_eq!(
            (run.status, run.driver, run.driver_epoch),
            (Status::Running, None, 1 + time),
            "given back"
        );
    }
    let result = stage.host.reap_detached_runs(&options(Stuck)).await;
    let entry = &result.runs[0];
    assert_eq!(
        (entry.outcome, entry.status, entry.terminalized_anyway),
        (ReapOutcome::BudgetExceeded, Some(Status::Failed), true)
    );
    let run = stage.run("r").await;
    assert_eq!(
        (run.end_reason, run.error.expect("why").code.as_str()),
        (Some(EndReason::BudgetExceeded), "budget_exceeded")
    );
    let log =
        stage.store.read(&Tenant::default(), &run_id("r"), Seq::START, 100, 1 << 20).await.expect("log");
    assert!(log.events.last().expect("an end").json.contains("budget_exceeded"));
}

/// A run whose time is up has the budget, and not more.
#[tokio::test]
async fn an_end_that_takes_too_long() {
    let stage = Stage::new();
    stage.left("r", Some(Duration::ZERO)).await;
    let result = stage.host.reap_detached_runs(&options(Stuck)).await;
    assert_eq!(
        (result.runs[0].outcome, result.runs[0].status),
        (ReapOutcome::Expired, Some(Status::Aborted))
    );
    let run = stage.run("r").await;
    assert_eq!(run.end_reason, Some(EndReason::CancelledUnverified));
    assert_eq!(run.cancel_requested.expect("recorded").reason, CancelReason::Ttl);
}

/// Steps that panic.
#[derive(Debug)]
struct Panics;

#[async_trait]
impl ReapSteps for Panics {
    async fn probe(&self, _: &Host, run: &RunRecord) -> RunProbe {
        assert_ne!(run.run_id.as_str(), "a-probe");
        RunProbe::Finished { exit_code: 0 }
    }

    async fn drive(&self, host: &Host, claim: ReapClaim) -> Driven {
        assert_ne!(claim.run().run_id.as_str(), "b-drive");
        complete(host, &claim).await
    }

    async fn reclaim(
        &self,
        _: &Host,
        run: &RunRecord,
    ) -> Result<outlast_runtime::ReclaimOutcome, outlast_runtime::SandboxReclaimFailed> {
        assert_ne!(run.run_id.as_str(), "c-reclaim");
        Ok(outlast_runtime::ReclaimOutcome::Destroyed)
    }
}

#[tokio::test]
async fn what_panics_takes_nothing_else_with_it() {
    let stage = Stage::new();
    for run in ["a-probe", "b-drive", "c-reclaim", "d-fine"] {
        stage.left(run, None).await;
    }
    let result = stage.host.reap_detached_runs(&options(Panics)).await;
    let outcome =
        |run: &str| result.runs.iter().find(|entry| entry.run_id.as_str() == run).expect("an entry").outcome;
    assert_eq!(outcome("d-fine"), ReapOutcome::Finalized);
    for run in ["a-probe", "b-drive", "c-reclaim"] {
        assert_eq!(outcome(run), ReapOutcome::Failed, "{run}");
    }
    assert!(result.has_failed());
    assert_eq!(stage.run("c-reclaim").await.status, Status::Completed, "what was done stays done");
}
