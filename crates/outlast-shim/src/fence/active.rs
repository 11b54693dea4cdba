//! The fence around the shim's own agent.

use std::path::PathBuf;

use outlast_core::journal::latch::{Fence, ProcessId};
use rustix::process::{Pid, Signal, WaitOptions};

use super::{cgroup, tree};
use crate::keeper::Channel;

/// A keeper in its fence.
pub(crate) struct ActiveFence {
    /// None once it was reaped: its pid may then be somebody else's.
    pub(crate) keeper: Option<Pid>,
    pub(crate) channel: Channel,
    pub(crate) kind: Kind,
}

/// What the fence is made of.
#[derive(Debug)]
pub(crate) enum Kind {
    PidNamespace,
    Cgroup(PathBuf),
    Subreaper,
}

impl ActiveFence {
    /// How others can kill it.
    pub(crate) fn describe(&self, keeper: ProcessId) -> Fence {
        match &self.kind {
            Kind::PidNamespace => Fence::PidNamespace { init: keeper },
            Kind::Cgroup(path) => Fence::Cgroup { path: path.to_string_lossy().into_owned(), keeper },
            Kind::Subreaper => Fence::Subreaper { keeper },
        }
    }

    /// Kills everything inside, the keeper too. One round: repeated until [`ActiveFence::is_gone`].
    pub(crate) fn strike(&self) {
        if let Some(keeper) = self.keeper {
            let _ = rustix::process::kill_process(keeper, Signal::KILL);
        }
        match &self.kind {
            Kind::PidNamespace => {}
            Kind::Cgroup(path) => {
                let _ = cgroup::kill(path);
            }
            // With the keeper dead its orphans are the shim's: it adopts them as well.
            Kind::Subreaper => {
                let _ = tree::signal_below_self(Signal::KILL);
            }
        }
    }

    /// Whether nothing is left, after [`ActiveFence::strike`] or where the keeper died by itself. Reaps what it finds.
    /// The keeper is a child of the shim, and every orphan becomes one, so no child left means no process left.
    pub(crate) fn is_gone(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, _))) if Some(pid) == self.keeper => self.keeper = None,
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return false,
                Err(_) => break,
            }
        }
        match &self.kind {
            Kind::Cgroup(path) => !cgroup::is_populated(path).unwrap_or(true),
            Kind::PidNamespace | Kind::Subreaper => true,
        }
    }

    /// Takes the empty fence down.
    pub(crate) fn dismantle(self) {
        self.strike();
        if let Some(keeper) = self.keeper {
            let _ =
                rustix::io::retry_on_intr(|| rustix::process::waitpid(Some(keeper), WaitOptions::empty()));
        }
        if let Kind::Cgroup(path) = &self.kind {
            cgroup::remove(path);
        }
    }
}
