//! One instance with one run, and what the cases do with it again and again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::decide::SandboxFacts;
use outlast_core::journal::exit::ExitRecord;
use outlast_core::journal::sentinel;
use outlast_core::shim::OutputLimits;
use outlast_core::{ExitSecret, InstanceId, RunId};

use super::Subject;
use crate::{Journal, KillOutcome, LaunchOrder, LaunchOutcome, Provider};

/// Longer than anything takes on a machine that is busy, and short enough for a person to wait.
const PATIENCE: Duration = Duration::from_secs(30);
/// What the design promises for a kill, from the call to the last process.
pub(super) const KILL_PROMISE_MS: u64 = 8_000;

pub(super) struct Bench {
    pub(super) subject: Arc<dyn Subject>,
    pub(super) provider: Arc<dyn Provider>,
    pub(super) instance: InstanceId,
    pub(super) run: RunId,
    pub(super) secret: ExitSecret,
    /// In the arguments and the environment of every process that the run starts.
    pub(super) marker: String,
}

impl Bench {
    /// A fresh instance with a run that was not launched.
    pub(super) async fn new(subject: Arc<dyn Subject>) -> Bench {
        let entropy = subject.ports().entropy;
        let (provider, instance) = (subject.provider(), entropy.instance_id());
        provider.create(&instance, None).await.expect("create");
        let bench = Bench {
            run: RunId::new("x").expect("id"),
            secret: entropy.exit_secret(),
            marker: String::new(),
            subject,
            provider,
            instance,
        };
        bench.another_run()
    }

    /// Another run in the same instance. Its id needs encoding.
    pub(super) fn another_run(&self) -> Bench {
        let entropy = self.subject.ports().entropy;
        Bench {
            subject: Arc::clone(&self.subject),
            provider: self.subject.provider(),
            instance: self.instance.clone(),
            run: RunId::new(format!("../r un'{}", entropy.hex_id())).expect("id"),
            secret: entropy.exit_secret(),
            marker: format!("marker-{}", entropy.hex_id()),
        }
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.provider.paths(&self.instance, None).workspace
    }

    /// An order for a shell script.
    pub(super) fn order(&self, script: &str) -> LaunchOrder {
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned());
        let script = format!(": {}\n{script}", self.marker);
        LaunchOrder {
            instance: self.instance.clone(),
            run: self.run.clone(),
            secret: self.secret.clone(),
            argv: vec!["sh".into(), "-c".into(), script],
            prompt: None,
            prompt_on_stdin: false,
            fallback: None,
            env: vec![("PATH".into(), path), ("MARKER".into(), self.marker.clone())],
            cwd: self.workspace(),
            fence: self.subject.fence(),
            limits: OutputLimits::default(),
        }
    }

    /// Launches a script that must start.
    pub(super) async fn launch(&self, script: &str) {
        let outcome = self.provider.launch(self.order(script)).await.expect("launch");
        assert_eq!(outcome, LaunchOutcome::Taken);
    }

    pub(super) async fn facts(&self) -> SandboxFacts {
        self.provider.facts(&self.instance, &self.run, &self.secret).await.expect("facts")
    }

    pub(super) async fn open(&self, from: u64) -> Box<dyn Journal> {
        self.provider.journal(&self.instance, &self.run, &self.secret, from).await.expect("journal")
    }

    pub(super) async fn kill(&self) -> KillOutcome {
        self.provider.kill(&self.instance, &self.run, Duration::from_secs(5)).await.expect("kill")
    }

    pub(super) fn census(&self) -> Vec<i32> {
        self.subject.census(&self.marker)
    }

    pub(super) fn assert_nothing_lives(&self) {
        let living = self.census();
        assert!(living.is_empty(), "processes of the run live: {living:?}");
    }

    pub(super) fn now(&self) -> u64 {
        self.subject.ports().clock.boot_ms()
    }

    /// Waits until it holds.
    pub(super) async fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let clock = self.subject.ports().clock;
        let deadline = clock.boot_ms() + PATIENCE.as_millis() as u64;
        while !holds() {
            assert!(clock.boot_ms() < deadline, "waited in vain: {what}");
            clock.sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until the script has written this into a file of its workspace.
    pub(super) async fn until_file(&self, name: &str) {
        let path = self.workspace().join(name);
        self.until(name, || path.exists()).await;
    }

    /// Waits until the shim has left.
    pub(super) async fn until_shim_is_gone(&self) -> SandboxFacts {
        let clock = self.subject.ports().clock;
        let deadline = clock.boot_ms() + PATIENCE.as_millis() as u64;
        loop {
            let facts = self.facts().await;
            if !facts.shim_alive {
                return facts;
            }
            assert!(clock.boot_ms() < deadline, "the shim does not leave");
            clock.sleep(Duration::from_millis(5)).await;
        }
    }

    /// Reads the journal from a byte to its end, in pieces of at most `max`; the agent's bytes and its exit. Asserts
    /// what readers rely on.
    pub(super) async fn read_to_end(&self, from: u64, max: usize) -> (Vec<u8>, ExitRecord) {
        let mut journal = self.open(from).await;
        let deadline = self.now() + PATIENCE.as_millis() as u64;
        let mut bytes = Vec::new();
        loop {
            assert!(self.now() < deadline, "the journal has no end: {:?}", String::from_utf8_lossy(&bytes));
            let read = journal.read(max, Duration::from_secs(1)).await.expect("read");
            assert!(read.bytes.len() <= max);
            let nothing = read.bytes.is_empty();
            bytes.extend_from_slice(&read.bytes);
            let Some(exit) = read.exit else { continue };
            let own = usize::try_from(exit.stdout_bytes - from).expect("size");
            let block = sentinel::block(exit.exit, &self.secret);
            if bytes.len() == own + block.len() {
                assert_eq!(&bytes[own..], block.as_bytes(), "the sentinel ends the journal");
                bytes.truncate(own);
                return (bytes, exit);
            }
            if nothing {
                // Between the exit and the sentinel.
                self.subject.ports().clock.sleep(Duration::from_millis(1)).await;
            }
        }
    }
}
