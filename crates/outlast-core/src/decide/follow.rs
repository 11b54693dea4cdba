//! What does a driver do with a run, given what its sandbox says?

use crate::journal::exit::ExitRecord;
use crate::journal::latch::{Latch, LatchState};
use crate::run::Phase;

/// What was found in the sandbox, read only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxFacts {
    /// Whether the runs directory exists.
    pub exists: bool,
    /// The launch latch.
    pub latch: LatchState,
    /// Whether a shim holds the run's lock, on the boot that the latch names.
    pub shim_alive: bool,
    /// The exit file, if it is filled.
    pub exit: Option<ExitRecord>,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Start a shim and let the latch decide.
    Launch,
    /// Read the journal.
    Follow,
    /// A cancel took the latch: no agent will ever run.
    NeverLaunched,
    /// The sandbox is gone, and with it the journal.
    SandboxGone,
}

/// Decides how to go on with a run that was just claimed. A run that is not known to be launched is launched again
/// whatever is found, since only the latch knows whether somebody else was first.
pub fn next(phase: Phase, facts: &SandboxFacts) -> Next {
    if !facts.exists {
        return Next::SandboxGone;
    }
    match (&facts.latch, phase) {
        (LatchState::Taken(Latch::Cancelled), _) => Next::NeverLaunched,
        (LatchState::Taken(Latch::Launch(_)) | LatchState::Torn, _) => Next::Follow,
        (LatchState::Free, Phase::Launched) => Next::SandboxGone,
        (LatchState::Free, Phase::Accepted | Phase::Launching) => Next::Launch,
    }
}

/// Whether a journal that has nothing new will stay silent for ever: the shim is dead, and the agent with it. The
/// answer counts only if a read of the journal to its end, made after these facts were gathered, finds no sentinel.
pub fn silent(facts: &SandboxFacts) -> bool {
    !facts.shim_alive
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::latch::{Fence, LaunchLatch, ProcessId};

    #[test]
    fn table() {
        let keeper = ProcessId { pid: 2, start: 2 };
        let launch = LatchState::Taken(Latch::Launch(LaunchLatch {
            boot_id: "b".into(),
            pid_ns: 1,
            shim: ProcessId { pid: 1, start: 1 },
            fence: Fence::Subreaper { keeper },
        }));
        let facts = |exists, latch: &LatchState| SandboxFacts {
            exists,
            latch: latch.clone(),
            shim_alive: false,
            exit: None,
        };
        for phase in Phase::ALL {
            assert_eq!(next(*phase, &facts(false, &launch)), Next::SandboxGone);
            assert_eq!(next(*phase, &facts(true, &launch)), Next::Follow);
            assert_eq!(next(*phase, &facts(true, &LatchState::Torn)), Next::Follow);
            assert_eq!(next(*phase, &facts(true, &LatchState::Taken(Latch::Cancelled))), Next::NeverLaunched);
            let free = if *phase == Phase::Launched { Next::SandboxGone } else { Next::Launch };
            assert_eq!(next(*phase, &facts(true, &LatchState::Free)), free);
        }
    }
}
