//! Killing a run's fence, and nothing else.

use std::path::Path;
use std::time::Duration;

use outlast_core::journal::files;
use outlast_core::journal::latch::{Fence, Latch, LatchState, LaunchLatch, ProcessId};
use outlast_shim::fence::{cgroup, tree};
use outlast_shim::{latch, lock, process};
use outlast_store::Clock;
use rustix::process::Signal;

use super::errors::Attempting;
use crate::{KillOutcome, ProviderError};

/// How much longer than the grace a shim gets: it kills by itself when its own grace is over, and then still has to
/// write down how the run ended.
const SHIM_EXTRA: Duration = Duration::from_secs(1);
/// For how long the death of what was killed is waited for.
const DEATH_PATIENCE: Duration = Duration::from_secs(5);
/// For how long a shim whose tree is gone may take to leave.
const LEAVE_PATIENCE: Duration = Duration::from_secs(2);
/// For how long a latch without content, whose taker lives, is waited for.
const CONTENT_PATIENCE: Duration = Duration::from_secs(2);

/// Between two looks: short at first, since most die at once.
const FIRST_LOOK: Duration = Duration::from_millis(5);
const LAST_LOOK: Duration = Duration::from_millis(50);

/// Kills what the run's latch names.
pub(super) async fn kill(
    clock: &dyn Clock,
    runs: &Path,
    enc: &str,
    grace: Duration,
) -> Result<KillOutcome, ProviderError> {
    let lock_file = runs.join(format!("{enc}{}", files::LOCK));
    let read = || latch::read(runs, enc).attempting(|| "cannot read the launch latch".to_owned());
    let mut state = read()?;
    if state == LatchState::Torn {
        // Somebody writes it at this moment, or died while writing.
        wait(clock, CONTENT_PATIENCE, || {
            latch::read(runs, enc).map_or(true, |state| state != LatchState::Torn)
                || !lock::is_held(&lock_file).unwrap_or(true)
        })
        .await;
        state = read()?;
    }
    let launch = match state {
        LatchState::Free | LatchState::Taken(Latch::Cancelled) => return Ok(KillOutcome::NeverStarted),
        LatchState::Torn => {
            let held = lock::is_held(&lock_file).attempting(|| "cannot ask for the run's lock".to_owned())?;
            return Ok(if held {
                unverified("a shim is starting the run and does not get on")
            } else {
                KillOutcome::NeverStarted
            });
        }
        LatchState::Taken(Latch::Launch(launch)) => launch,
    };
    // Of what another boot has started nothing is left, and its pids are somebody else's now.
    if launch.boot_id != clock.boot_id() {
        return Ok(KillOutcome::Dead);
    }
    let pid_ns = process::pid_ns().attempting(|| "cannot find out the PID namespace".to_owned())?;
    if launch.pid_ns != pid_ns {
        return Ok(unverified(
            "the run was started in another PID namespace, so its processes cannot be named here",
        ));
    }
    let exit_file = runs.join(format!("{enc}{}", files::EXIT));
    Ok(kill_launched(clock, &launch, &exit_file, grace).await)
}

fn unverified(cause: impl Into<String>) -> KillOutcome {
    KillOutcome::Unverified { cause: cause.into() }
}

async fn kill_launched(
    clock: &dyn Clock,
    launch: &LaunchLatch,
    exit_file: &Path,
    grace: Duration,
) -> KillOutcome {
    let shim = launch.shim;
    // The shim does it best: it gives the grace, knows the tree, and writes down how the run ended. It may be stopped.
    let asked = process::signal(shim, Signal::CONT).and_then(|_| process::signal(shim, Signal::TERM));
    if matches!(asked, Ok(true)) {
        wait(clock, grace + SHIM_EXTRA, || !process::alive(shim)).await;
    }
    let outcome = match &launch.fence {
        Fence::PidNamespace { init } => kill_init(clock, *init).await,
        Fence::Cgroup { path, .. } => kill_cgroup(clock, Path::new(path)).await,
        Fence::Subreaper { keeper } => kill_tree(clock, shim, *keeper, exit_file).await,
    };
    if outcome != KillOutcome::Dead {
        return outcome;
    }
    // With its tree gone a shim leaves at once, unless it is stopped again or waits for a disk. Its lock would keep
    // the sandbox from being destroyed, and what it has not written by now it will not.
    if !wait(clock, LEAVE_PATIENCE, || !process::alive(shim)).await {
        let _ = process::signal(shim, Signal::KILL);
        wait(clock, DEATH_PATIENCE, || !process::alive(shim)).await;
    }
    if let Fence::Cgroup { path, .. } = &launch.fence {
        cgroup::remove(Path::new(path));
    }
    KillOutcome::Dead
}

/// An init is dead only after every process of its namespace is.
async fn kill_init(clock: &dyn Clock, init: ProcessId) -> KillOutcome {
    if let Err(error) = process::signal(init, Signal::KILL) {
        return unverified(format!("process {} may not be killed: {error}", init.pid));
    }
    if wait(clock, DEATH_PATIENCE, || !process::alive(init)).await {
        return KillOutcome::Dead;
    }
    unverified(format!("process {} was killed and does not die", init.pid))
}

async fn kill_cgroup(clock: &dyn Clock, path: &Path) -> KillOutcome {
    if let Err(error) = cgroup::kill(path) {
        return unverified(format!("the cgroup {} may not be killed: {error}", path.display()));
    }
    if wait(clock, DEATH_PATIENCE, || cgroup::is_populated(path).is_ok_and(|populated| !populated)).await {
        return KillOutcome::Dead;
    }
    unverified(format!("the cgroup {} was killed and holds living processes", path.display()))
}

async fn kill_tree(clock: &dyn Clock, shim: ProcessId, keeper: ProcessId, exit_file: &Path) -> KillOutcome {
    // As long as the shim lives no orphan leaves its tree. Two rounds in a row must find nothing, as one look at
    // `/proc` may miss a process that moves meanwhile.
    let mut quiet = 0;
    wait(clock, DEATH_PATIENCE, || {
        if !process::alive(shim) {
            return true;
        }
        quiet = match tree::signal_below(shim, Signal::KILL) {
            Ok(true) => quiet + 1,
            _ => 0,
        };
        quiet == 2
    })
    .await;
    // It lived during both rounds, so nothing can have escaped from them.
    if quiet == 2 && process::alive(shim) {
        return KillOutcome::Dead;
    }
    // A shim writes the exit when it has seen the last process of its tree die, not before.
    if exit_is_recorded(exit_file) {
        return KillOutcome::Dead;
    }
    if process::alive(shim) {
        return unverified("processes of the run were killed and do not die");
    }
    // The agent dies with the keeper. What had left its tree before is nobody's now.
    let _ = process::signal(keeper, Signal::KILL);
    wait(clock, DEATH_PATIENCE, || !process::alive(keeper)).await;
    unverified("the run's shim is dead, and without it processes that left the agent's tree cannot be found")
}

fn exit_is_recorded(exit_file: &Path) -> bool {
    std::fs::read(exit_file).is_ok_and(|bytes| bytes.trim_ascii().ends_with(b"}"))
}

/// Waits for a condition; whether it came true in time.
async fn wait(clock: &dyn Clock, patience: Duration, mut done: impl FnMut() -> bool + Send) -> bool {
    let deadline = clock.boot_ms().saturating_add(outlast_core::duration::millis(patience));
    let mut look = FIRST_LOOK;
    loop {
        if done() {
            return true;
        }
        if clock.boot_ms() >= deadline {
            return false;
        }
        clock.sleep(look).await;
        look = (look * 2).min(LAST_LOOK);
    }
}
