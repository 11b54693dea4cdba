//! Launching something harmless as a run is launched, to see what the machine grants.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast_core::RunId;
use outlast_core::journal::latch::{Fence, Latch, LatchState};
use outlast_core::shim::{FenceChoice, OutputLimits};
use outlast_sandbox::{LaunchOrder, LocalConfig, LocalProvider, Provider, ShimProgram};
use outlast_store::Ports;

use crate::SHIM_COMMAND;

/// How long what is launched may take to end.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);
const GRACE: Duration = Duration::from_secs(1);

/// What came of the launches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trials {
    /// Under the fence that the configuration asks for: the fence that it had, or why there was none.
    pub asked: Result<FenceChoice, String>,
    /// Under each stronger fence than that, or, where there was none, under the weakest: why not.
    pub others: Vec<(FenceChoice, Result<FenceChoice, String>)>,
}

/// A directory that is removed again.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Launches this program under the fences, in a directory of its own below `parent` that is removed again.
///
/// # Errors
///
/// The directory cannot be made.
pub async fn run(parent: &Path, choice: FenceChoice, ports: &Ports) -> Result<Trials, String> {
    let scratch = Scratch(parent.join(format!(".doctor-{}", ports.entropy.hex_id())));
    DirBuilder::new()
        .mode(0o700)
        .create(&scratch.0)
        .map_err(|error| format!("cannot make {}: {error}", scratch.0.display()))?;
    let asked = launch(&scratch.0, choice, ports).await;
    let mut others = Vec::new();
    for fence in worth_a_look(choice, &asked) {
        others.push((*fence, launch(&scratch.0, *fence, ports).await));
    }
    Ok(Trials { asked, others })
}

/// Those of which it is worth knowing why they cannot be had, or whether they can.
fn worth_a_look(choice: FenceChoice, asked: &Result<FenceChoice, String>) -> &'static [FenceChoice] {
    use FenceChoice::{Auto, Cgroup, PidNamespace, Subreaper};
    match (choice, asked) {
        (Auto, Ok(Cgroup)) => &[PidNamespace],
        (Auto, Ok(Subreaper)) => &[PidNamespace, Cgroup],
        (PidNamespace | Cgroup, Err(_)) => &[Subreaper],
        _ => &[],
    }
}

async fn launch(root: &Path, fence: FenceChoice, ports: &Ports) -> Result<FenceChoice, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let text = program.to_str().ok_or("the path of this program is not UTF-8")?.to_owned();
    let provider = LocalProvider::new(LocalConfig {
        root: root.to_owned(),
        shim: ShimProgram { program, args: vec![SHIM_COMMAND.into()] },
        ports: ports.clone(),
    })
    .map_err(|error| error.message)?;
    let instance = ports.entropy.instance_id();
    let run = RunId::new("doctor").map_err(|error| error.to_string())?;
    let secret = ports.entropy.exit_secret();
    provider.create(&instance, None).await.map_err(|error| error.message)?;
    let order = LaunchOrder {
        instance: instance.clone(),
        run: run.clone(),
        secret: secret.clone(),
        argv: vec![text, "--version".to_owned()],
        prompt: None,
        prompt_on_stdin: false,
        fallback: None,
        env: Vec::new(),
        cwd: provider.paths(&instance, None).workspace,
        fence,
        limits: OutputLimits::default(),
    };
    provider.launch(order).await.map_err(|error| error.to_string())?;
    let deadline = ports.clock.boot_ms() + outlast_core::duration::millis(PATIENCE);
    let outcome = loop {
        let facts = provider.facts(&instance, &run, &secret).await.map_err(|error| error.message)?;
        if let (LatchState::Taken(Latch::Launch(launch)), Some(exit)) = (&facts.latch, &facts.exit) {
            break match (&exit.cause, exit.exit) {
                (None, 0) => Ok(kind(&launch.fence)),
                (Some(cause), _) => Err(cause.message.clone()),
                (None, status) => Err(format!("what was launched ended with status {status}")),
            };
        }
        if ports.clock.boot_ms() >= deadline {
            break Err(format!("what was launched does not end within {} s", PATIENCE.as_secs()));
        }
        ports.clock.sleep(LOOK).await;
    };
    let _ = provider.kill(&instance, &run, GRACE).await;
    outcome
}

fn kind(fence: &Fence) -> FenceChoice {
    match fence {
        Fence::PidNamespace { .. } => FenceChoice::PidNamespace,
        Fence::Cgroup { .. } => FenceChoice::Cgroup,
        Fence::Subreaper { .. } => FenceChoice::Subreaper,
    }
}
