//! Sweeps over many runs that nobody watches, and retention beside appends.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use outlast::core::decide::EndVerdict;
use outlast::core::event::{Event, Origin};
use outlast::core::journal::exit::ExitRecord;
use outlast::core::journal::latch::{Fence, Latch, LaunchLatch, ProcessId};
use outlast::core::journal::{files, sentinel};
use outlast::core::run::{ClaimToken, EndReason, Status};
use outlast::core::{Seq, Tenant, encoding};
use outlast::store::{
    Append, Clock, Entropy, Finish, Instance, InstanceState, NewEvent, SystemClock, SystemEntropy,
};
use outlast::{Local, LocalOptions, RetainOptions};
use rustix::fs::{FlockOperation, fcntl_lock};

use crate::machine::{Place, peak_mb, timed};
use crate::report::{figure, millis, percentile};
use crate::store::{accept, append};

const PRODUCING: usize = 9_000;
const FINISHED: usize = 1_000;

/// A sweep over ten thousand runs: nine thousand work, a thousand have ended.
pub fn sweep() {
    let place = Place::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    raise_open_files();
    let locks = runtime.block_on(async {
        let local = Local::open(LocalOptions::new(place.data_dir())).await.expect("open");
        let mut locks = Vec::new();
        for n in 0..PRODUCING + FINISHED {
            // As they come: those that have ended are among the others.
            let finished = n % ((PRODUCING + FINISHED) / FINISHED) == 0;
            locks.extend(leave(&local, &place.data_dir(), n, finished).await);
        }
        local.close().await;
        locks
    });
    let (all, took, peak) = reap(&place, &["--max-runs", "100000"]);
    assert_eq!(
        (all["probed"].as_u64(), all["outcomes"]["finalized"].as_u64()),
        (Some(10_000), Some(1_000)),
        "{all:.200}"
    );
    let (rest, took_probing, peak_probing) = reap(&place, &[]);
    assert_eq!(rest["outcomes"]["producing"].as_u64(), Some(PRODUCING as u64));
    let finalizing = took.saturating_sub(took_probing);
    figure(
        "sweep: probes of runs that work",
        PRODUCING as f64 / took_probing.as_secs_f64(),
        "/s",
        ">= 500/s",
    );
    figure("sweep: runs finalised beside them", FINISHED as f64 / finalizing.as_secs_f64(), "/s", ">= 50/s");
    figure("sweep over 10000 runs: peak memory", peak.max(peak_probing), "MB", "");
    drop(locks);
}

/// A sweep: its result, how long it took, and the most memory that it had.
fn reap(place: &Place, flags: &[&str]) -> (serde_json::Value, Duration, f64) {
    let args = ["reap", "--json"].iter().chain(flags).copied();
    let ((output, peak), took) = timed(|| {
        let mut child = place.outlast(args).stdout(Stdio::piped()).spawn().expect("spawn");
        let pid = child.id();
        let mut stdout = child.stdout.take().expect("stdout");
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            std::io::Read::read_to_string(&mut stdout, &mut text).expect("read");
            text
        });
        let mut peak = 0.0_f64;
        while child.try_wait().expect("wait").is_none() {
            peak = peak.max(peak_mb(pid).unwrap_or(0.0));
            #[allow(clippy::disallowed_methods, reason = "a measurement of real time")]
            std::thread::sleep(Duration::from_millis(10));
        }
        (reader.join().expect("reader"), peak)
    });
    (serde_json::from_str(&output).expect("a result"), took, peak)
}

/// A run that was launched and left alone, with the files that its shim would have made. The lock of one that works is
/// held for as long as the answer is.
async fn leave(local: &Local, data_dir: &Path, n: usize, finished: bool) -> Option<File> {
    let store = local.host().store();
    let run = format!("run-{n}");
    let token = accept(&**store, local.owner(), n as u32).await;
    let instance = Instance {
        instance_id: SystemEntropy.instance_id(),
        sandbox_key: run.clone(),
        provider: "local".to_owned(),
        machine: local.host().machine().map(str::to_owned),
        state: InstanceState::Creating,
        created_at: 1,
        tenant: Tenant::default(),
        thread_id: None,
        lent: false,
        keep_alive: None,
        reclaim: None,
    };
    store.create_instance(&token, &instance).await.expect("bound");
    store.instance_created(&instance.instance_id).await.expect("made");
    store.launched(&token, Seq(1), Vec::new()).await.expect("launched");
    let record = store.run(&Tenant::default(), &token.run_id).await.expect("answered").expect("there");
    store.release(&token).await.expect("released");

    let runs = data_dir.join("sandboxes").join(encoding::encode(instance.instance_id.as_str())).join("runs");
    fs::create_dir_all(&runs).expect("directory");
    let path = |suffix: &str| runs.join(format!("{}{suffix}", encoding::encode(&run)));
    let process = ProcessId { pid: i32::MAX, start: 1 };
    let latch = Latch::Launch(LaunchLatch {
        boot_id: SystemClock::new().boot_id(),
        pid_ns: 1,
        shim: process,
        fence: Fence::Subreaper { keeper: process },
    });
    fs::write(path(files::LATCH), serde_json::to_vec(&latch).expect("json")).expect("latch");
    let mut journal =
        "a line of text as programs print it while they work on something, eighty bytes\n".repeat(50);
    let lock = File::create(path(files::LOCK)).expect("lock");
    if !finished {
        fs::write(path(files::JOURNAL), journal).expect("journal");
        fcntl_lock(&lock, FlockOperation::NonBlockingLockExclusive).expect("locked");
        return Some(lock);
    }
    let exit = ExitRecord {
        exit: 0,
        signal: None,
        stdout_bytes: journal.len() as u64,
        nonce: record.exit_secret.clone(),
        cause: None,
    };
    journal.push_str(&sentinel::block(0, &record.exit_secret));
    fs::write(path(files::JOURNAL), journal).expect("journal");
    fs::write(path(files::EXIT), serde_json::to_vec(&exit).expect("json")).expect("exit");
    None
}

fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Where that is not enough, opening a lock says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

const LOGS: u64 = 100;
const EVENTS: u64 = 10_000;

/// Appends of eight runs, alone and while a million events age out beside them.
pub fn retention() {
    let place = Place::new();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("runtime");
    runtime.block_on(async {
        let local = Local::open(LocalOptions::new(place.data_dir())).await.expect("open");
        let store = Arc::clone(local.host().store());
        for n in 0..LOGS {
            let token = accept(&*store, local.owner(), n as u32).await;
            for step in 0..EVENTS / 1000 {
                store.append(append(&token, 1 + step * 1000, 1000)).await.expect("append");
            }
            store.finish(ending(&token, 1 + EVENTS)).await.expect("ended");
        }
        let (mut alone, _) = appends(&local, 1_000, async {}).await;
        let options = RetainOptions { events: Some(Duration::ZERO), ..RetainOptions::default() };
        let host = local.host().clone();
        let (mut beside, (result, took)) = appends(&local, 2_000, async move {
            #[allow(clippy::disallowed_methods, reason = "a measurement of real time")]
            let began = std::time::Instant::now();
            let result = host.retain(&options).await;
            (result, began.elapsed())
        })
        .await;
        assert_eq!(result.events, LOGS * (EVENTS + 2), "{result:?}");
        let (p99_alone, p99_beside) = (percentile(&mut alone, 0.99), percentile(&mut beside, 0.99));
        figure(
            "retention: events deleted beside appends",
            result.events as f64 / took.as_secs_f64(),
            "/s",
            "",
        );
        figure("appends of 8 runs, p99", p99_alone, "ms", "");
        figure("the same beside retention, p99", p99_beside, "ms", "");
        figure("appends' p99 beside retention, by that alone", p99_beside / p99_alone, "x", "< 3x");
        local.close().await;
    });
}

/// How long each append of eight runs takes, in milliseconds, for as long as the work beside them takes and at least for two
/// seconds.
async fn appends<T>(local: &Local, first: u32, beside: impl Future<Output = T>) -> (Vec<f64>, T) {
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mut tasks = Vec::new();
    for n in 0..8 {
        let token = accept(&**local.host().store(), local.owner(), first + n).await;
        let (store, stop) = (Arc::clone(local.host().store()), Arc::clone(&stop));
        tasks.push(tokio::spawn(async move {
            let (mut tail, mut delays) = (1, Vec::new());
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                #[allow(clippy::disallowed_methods, reason = "a measurement of real time")]
                let began = std::time::Instant::now();
                store.append(append(&token, tail, 1)).await.expect("append");
                delays.push(millis(began.elapsed()));
                tail += 1;
            }
            delays
        }));
    }
    #[allow(clippy::disallowed_methods, reason = "a measurement of real time")]
    let (done, ()) = tokio::join!(beside, tokio::time::sleep(Duration::from_secs(2)));
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut delays = Vec::new();
    for task in tasks {
        delays.extend(task.await.expect("task"));
    }
    (delays, done)
}

/// An end of the run.
fn ending(token: &ClaimToken, tail: u64) -> Finish {
    let event = Event::RunFinished {
        thread_id: "t".into(),
        run_id: "r".into(),
        result: None,
        usage: Vec::new().into(),
        metadata: None,
    };
    let events = vec![NewEvent::new(Origin::Host, event.chunk())];
    Finish {
        append: Append { events, ..append(token, tail, 0) },
        verdict: EndVerdict { status: Status::Completed, error: None, reason: EndReason::Exited },
        cancel: None,
        exit_code: Some(0),
        usage: Vec::new(),
    }
}
