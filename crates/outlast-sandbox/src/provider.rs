//! What a provider must do.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::decide::{RunUse, SandboxFacts};
use outlast_core::journal::exit::ExitRecord;
use outlast_core::shim::{FenceChoice, OutputLimits};
use outlast_core::{ExitSecret, InstanceId, RunId};

use crate::RunListing;

/// Makes sandboxes and reaches into them.
#[async_trait]
pub trait Provider: Send + Sync + std::fmt::Debug {
    /// The provider's name, as in records.
    fn name(&self) -> &'static str;

    /// The machine that instances are bound to; none: every host reaches them. A random id kept beside the instances,
    /// so that a copied disk image is not taken for the machine.
    fn machine(&self) -> Option<&str>;

    /// Creates what the intent row promises: the runs directory and, where no directory was lent, a workspace.
    /// Repeating it is harmless.
    async fn create(&self, instance: &InstanceId, lent: Option<&str>) -> Result<(), ProviderError>;

    /// Whether the instance exists.
    async fn exists(&self, instance: &InstanceId) -> Result<bool, ProviderError>;

    /// Where things are, for the agent's command line and environment.
    fn paths(&self, instance: &InstanceId, lent: Option<&str>) -> InstancePaths;

    /// Starts a shim and lets the latch decide. Idempotent: of any number of calls, in any number of processes, frozen
    /// and thawed at will, at most one starts an agent.
    async fn launch(&self, order: LaunchOrder) -> Result<LaunchOutcome, LaunchError>;

    /// Takes the latch so that no agent will ever be started.
    async fn latch_cancelled(
        &self,
        instance: &InstanceId,
        run: &RunId,
    ) -> Result<LaunchOutcome, ProviderError>;

    /// What the sandbox says of the run. Read only.
    async fn facts(
        &self,
        instance: &InstanceId,
        run: &RunId,
        secret: &ExitSecret,
    ) -> Result<SandboxFacts, ProviderError>;

    /// Opens the journal at a byte. It need not exist yet.
    async fn journal(
        &self,
        instance: &InstanceId,
        run: &RunId,
        secret: &ExitSecret,
        from: u64,
    ) -> Result<Box<dyn Journal>, ProviderError>;

    /// The end of the journal, at most so many bytes; none where there is no journal.
    async fn journal_tail(
        &self,
        instance: &InstanceId,
        run: &RunId,
        max_bytes: usize,
    ) -> Result<Option<Vec<u8>>, ProviderError>;

    /// The end of the agent's standard error, at most so many bytes, as text.
    async fn stderr_tail(
        &self,
        instance: &InstanceId,
        run: &RunId,
        max_bytes: usize,
    ) -> Result<String, ProviderError>;

    /// Kills the run's fence: asks the tree to end, kills it after `grace`, and verifies. Addresses nothing but the
    /// run's own fence. Safe to call from several processes at once and again and again.
    async fn kill(
        &self,
        instance: &InstanceId,
        run: &RunId,
        grace: Duration,
    ) -> Result<KillOutcome, ProviderError>;

    /// Destroys the instance: everything that `create` made, in quarantine or not, never a lent directory. Already gone is
    /// success. Refused while a run lives in it.
    async fn destroy(&self, instance: &InstanceId) -> Result<(), ProviderError>;

    /// Everything that there is on this provider's side and that this host reaches, whoever made it.
    async fn list(&self) -> Result<Vec<Found>, ProviderError>;

    /// About how many bytes all journals take.
    async fn journal_bytes(&self) -> Result<u64, ProviderError>;

    /// Every name in the instance's runs directory, with its age on the sandbox's own clock. Read only. Providers that
    /// cannot look for themselves use [`crate::remote_listing`].
    async fn run_files(&self, instance: &InstanceId) -> Result<RunListing, ProviderError>;

    /// Who uses the run's files now. A question only, and old as soon as it is answered.
    async fn run_use(&self, instance: &InstanceId, run: &RunId) -> Result<RunUse, ProviderError>;

    /// Deletes the run's files, and no other's, while nobody uses them; otherwise says who does, and nothing is deleted.
    /// Repeating it is harmless, and finishes what an interrupted call has left.
    ///
    /// Whether the files are useless the caller must know: it asks the store, which grants no claim on a run that has
    /// ended. What this sees to itself is that nobody is hurt who comes in between:
    ///
    /// - It holds the run's lock meanwhile, so there is no shim; and one that waits for the lock finds the latch taken.
    /// - The launch latch stays for as long as the instance does, and where it is free it is taken first, as for a cancel. A
    ///   host that was frozen before it started a shim, and thaws after the run has ended and its files are gone, must
    ///   not find it free: the store's refusal does not reach whoever has asked before.
    /// - The journal goes first, while no reader has it open: so whoever opens it later finds it [missing](
    ///   JournalRead::missing), never without the exit that belongs to it. The lock goes last: as long as there is a file
    ///   beside the latch, the listing shows the run, and the next call removes the rest.
    async fn remove_run(&self, instance: &InstanceId, run: &RunId) -> Result<RunUse, ProviderError>;

    /// Puts an instance aside, so that nothing finds it in its place any more and nothing of it is lost. Refused while a
    /// run lives in it.
    async fn quarantine(&self, instance: &InstanceId) -> Result<(), ProviderError>;
}

/// Something that may be an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its name, as the provider has it.
    pub name: String,
    /// Which instance it is; none where the name is not understood.
    pub instance: Option<InstanceId>,
    /// Whether it was put aside.
    pub quarantined: bool,
    /// When it was made, or put aside, in milliseconds since 1970 on the provider's clock; none where that cannot be told.
    pub since: Option<u64>,
}

/// Where things are inside an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstancePaths {
    /// The workspace.
    pub workspace: PathBuf,
    /// Where prompt files lie, readable for the agent.
    pub prompts: PathBuf,
}

/// A run that is to be launched.
#[derive(Debug, Clone)]
pub struct LaunchOrder {
    /// The instance.
    pub instance: InstanceId,
    /// The run.
    pub run: RunId,
    /// Its exit secret.
    pub secret: ExitSecret,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The agent's standard input; also readable for it under `OUTLAST_PROMPT_FILE`.
    pub prompt: Option<String>,
    /// Whether the prompt is the agent's standard input; otherwise that is empty and only the file exists.
    pub prompt_on_stdin: bool,
    /// The second attempt: markers, program, standard input.
    pub fallback: Option<(Vec<String>, Vec<String>, Option<String>)>,
    /// The agent's whole environment, but for `OUTLAST_PROMPT_FILE`, which the provider adds.
    pub env: Vec<(String, String)>,
    /// The working directory.
    pub cwd: PathBuf,
    /// Which fence to use.
    pub fence: FenceChoice,
    /// Bounds of the output.
    pub limits: OutputLimits,
}

/// What became of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchOutcome {
    /// This call took the latch.
    Taken,
    /// The latch was taken before. What it says is in [`Provider::facts`].
    TakenBefore,
}

/// Why nothing was launched. The latch was not taken by this call.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LaunchError {
    /// `sandbox_gone`.
    #[error("the sandbox is gone: {0}")]
    SandboxGone(String),
    /// Another attempt may succeed.
    #[error("{0}")]
    Failed(String),
}

/// The provider could not answer or act.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{provider}: {message}")]
pub struct ProviderError {
    /// The provider.
    pub provider: &'static str,
    /// What is wrong, for people.
    pub message: String,
}

/// What became of a kill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KillOutcome {
    /// No process of the run lives: proven.
    Dead,
    /// Nothing was started, so nothing lives: the latch is free, or a cancel has it, or its taker died before it started
    /// anything.
    NeverStarted,
    /// It could not be verified that all processes are gone.
    Unverified {
        /// Why, for people.
        cause: String,
    },
}

/// A journal that is being read.
#[async_trait]
pub trait Journal: Send {
    /// The next bytes, at most `max`. Waits until there are some, until something else may have changed (the exit, the
    /// shim's death), or for at most `patience`. Bytes are read before the exit is, so a line break that the shim added
    /// is never seen without it.
    async fn read(&mut self, max: usize, patience: Duration) -> Result<JournalRead, ProviderError>;
}

/// What a read found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JournalRead {
    /// New bytes; empty where there were none in time.
    pub bytes: Vec<u8>,
    /// How large the journal was, in bytes, when they were read. A journal only grows.
    pub size: u64,
    /// The exit file, if it is filled.
    pub exit: Option<ExitRecord>,
    /// Whether there is no journal: not yet, or not any more. One that was there for this reader stays.
    pub missing: bool,
}
