//! Deleting one run's files from an instance that lives on.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::decide::{FilesAge, RunUse};
use outlast_core::journal::files;
use outlast_core::journal::latch::{Latch, LatchState};

use super::Subject;
use super::bench::Bench;
use crate::{AgeGate, KillOutcome, LaunchOutcome, RunGroup};

impl Bench {
    /// What the listing shows of this bench's run.
    async fn listed(&self) -> Option<RunGroup> {
        let listing = self.provider.run_files(&self.instance).await.expect("listing");
        listing.groups().into_iter().find(|group| group.run.as_ref() == Some(&self.run))
    }

    async fn remove(&self) -> RunUse {
        self.provider.remove_run(&self.instance, &self.run).await.expect("remove")
    }

    /// Waits until nobody uses the run's files. A process that another thread forks at the moment has whatever this one has
    /// open, until it executes its program.
    async fn until_free(&self) {
        let clock = self.subject.ports().clock;
        let deadline = clock.boot_ms() + 30_000;
        while self.in_use().await != RunUse::Free {
            assert!(clock.boot_ms() < deadline, "somebody uses them for ever");
            clock.sleep(Duration::from_millis(5)).await;
        }
    }

    async fn in_use(&self) -> RunUse {
        self.provider.run_use(&self.instance, &self.run).await.expect("use")
    }
}

pub(super) async fn files_are_listed_with_their_ages(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    let listing = bench.provider.run_files(&bench.instance).await.expect("listing");
    assert_eq!((listing.files.len(), listing.age_gate), (0, AgeGate::Available));
    let before = listing.now.expect("a clock");
    bench.launch("echo hi").await;
    bench.until_shim_is_gone().await;
    let group = bench.listed().await.expect("listed");
    for suffix in [files::LATCH, files::LOCK, files::JOURNAL, files::STDERR, files::EXIT] {
        let name = format!("{}{suffix}", bench.run.encoded());
        assert!(group.names.contains(&name), "{name}: {group:?}");
    }
    let FilesAge::Known { newest, now } = group.age else { panic!("{group:?}") };
    assert!(
        newest + 2_000 >= before && newest <= now + 2_000 && now < before + 600_000,
        "{before} {group:?}"
    );
    let nowhere = bench.subject.ports().entropy.instance_id();
    bench.provider.run_files(&nowhere).await.expect_err("no instance is not an empty one");
}

pub(super) async fn one_runs_files_go_and_its_latch_stays(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    let neighbour = bench.another_run();
    neighbour.launch("echo kept").await;
    neighbour.until_shim_is_gone().await;
    let order = crate::LaunchOrder {
        prompt: Some("hush".into()),
        ..bench
            .order("echo started >> starts; cp \"$OUTLAST_PROMPT_FILE\" seen; echo \"$OUTLAST_PROMPT_FILE\"")
    };
    bench.provider.launch(order.clone()).await.expect("launch");
    let (printed, _) = bench.read_to_end(0, 4096).await;
    let prompt = std::path::PathBuf::from(String::from_utf8(printed).expect("a path").trim_end());
    bench.until_shim_is_gone().await;
    bench.until_free().await;
    for _ in 0..2 {
        assert_eq!(bench.remove().await, RunUse::Free, "repeating it is harmless");
        assert_eq!(bench.listed().await, None);
    }
    assert!(!prompt.exists(), "the prompt goes too");
    assert!(bench.workspace().join("seen").exists(), "the work does not");
    // A host that was frozen before it started its shim thaws now.
    assert_eq!(bench.provider.launch(order).await.expect("launch"), LaunchOutcome::TakenBefore);
    let facts = bench.facts().await;
    assert!(
        matches!(facts.latch, LatchState::Taken(Latch::Launch(_))),
        "who it was can still be told: {facts:?}"
    );
    assert_eq!(std::fs::read_to_string(bench.workspace().join("starts")).expect("starts"), "started\n");
    // Without the exit that is gone, not every fence can prove a death.
    assert_ne!(bench.kill().await, KillOutcome::NeverStarted);
    let read = bench.open(0).await.read(4096, Duration::ZERO).await.expect("read");
    assert!(read.missing && read.bytes.is_empty() && read.exit.is_none(), "{read:?}");
    let tail = bench.provider.journal_tail(&bench.instance, &bench.run, 100).await.expect("tail");
    assert_eq!(tail, None);
    assert_eq!(neighbour.read_to_end(0, 4096).await.0, b"kept\n");
    assert!(neighbour.listed().await.is_some());
}

pub(super) async fn not_under_a_shim(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    bench.launch("touch up; while ! [ -e go ]; do sleep 0.01; done; echo done").await;
    bench.until_file("up").await;
    let before = bench.listed().await.expect("listed").names;
    assert_eq!((bench.in_use().await, bench.remove().await), (RunUse::Shim, RunUse::Shim));
    assert_eq!(bench.listed().await.expect("listed").names, before);
    std::fs::write(bench.workspace().join("go"), "").expect("go");
    assert_eq!(bench.read_to_end(0, 4096).await.0, b"done\n", "nothing was lost");
    bench.until_shim_is_gone().await;
    bench.until_free().await;
    assert_eq!(bench.remove().await, RunUse::Free);
}

pub(super) async fn not_under_a_reader(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    bench.launch("echo one; echo two").await;
    bench.until_shim_is_gone().await;
    let mut readers = [bench.open(0).await, bench.open(4).await];
    // A reader counts from its opening on, not from its first read.
    assert_eq!((bench.in_use().await, bench.remove().await), (RunUse::Reader, RunUse::Reader));
    let read = readers[0].read(4, Duration::ZERO).await.expect("read");
    assert!(!read.missing);
    assert_eq!(read.bytes, b"one\n");
    let [first, second] = readers;
    drop(second);
    assert_eq!(bench.remove().await, RunUse::Reader, "the other one still reads");
    drop(first);
    bench.until_free().await;
    assert_eq!(bench.remove().await, RunUse::Free);
    assert_eq!(bench.listed().await, None);
}

pub(super) async fn a_latch_that_is_free_is_taken_first(subject: Arc<dyn Subject>) {
    let bench = Bench::new(subject).await;
    assert_eq!(bench.remove().await, RunUse::Free);
    assert_eq!(bench.facts().await.latch, LatchState::Taken(Latch::Cancelled));
    let launched = bench.provider.launch(bench.order("touch up")).await.expect("launch");
    assert_eq!(launched, LaunchOutcome::TakenBefore);
    assert!(!bench.workspace().join("up").exists());
}

pub(super) async fn removing_and_launching_race(subject: Arc<dyn Subject>) {
    let first = Bench::new(subject).await;
    for round in 0..20_u64 {
        let bench = first.another_run();
        let (provider, order) = (bench.subject.provider(), bench.order(&format!("echo x >> starts-{round}")));
        let launch = tokio::spawn(async move { provider.launch(order).await });
        bench.subject.ports().clock.sleep(Duration::from_micros(500 * round)).await;
        let mut removed = Vec::new();
        while removed.last() != Some(&RunUse::Free) {
            removed.push(bench.remove().await);
            bench.subject.ports().clock.sleep(Duration::from_millis(1)).await;
        }
        let launched = launch.await.expect("task").expect("launch");
        if removed == [RunUse::Free] && launched == LaunchOutcome::Taken {
            // Only a shim that had left already, its agent with it.
            bench.assert_nothing_lives();
        }
        let again = bench.provider.launch(bench.order(&format!("echo x >> starts-{round}"))).await;
        assert_eq!(again.expect("launch"), LaunchOutcome::TakenBefore, "round {round}");
        let starts = std::fs::read_to_string(bench.workspace().join(format!("starts-{round}")));
        let expected = if launched == LaunchOutcome::Taken { "x\n" } else { "" };
        assert_eq!(starts.unwrap_or_default(), expected, "round {round}: {removed:?} {launched:?}");
    }
}
