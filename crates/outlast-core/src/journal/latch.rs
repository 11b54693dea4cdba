//! The launch latch: who got the right to start the agent, and how its tree can be killed.

use serde::{Deserialize, Serialize};

/// A process, named so that a recycled pid is never taken for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// The pid in the namespace of [`LaunchLatch::pid_ns`].
    pub pid: i32,
    /// When it started, in clock ticks since the boot (`/proc/PID/stat`, field 22).
    pub start: u64,
}

/// What holds the agent's tree together, from strong to weak.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Fence {
    /// The tree lives in a PID namespace of its own: killing its init kills every process in it, and init is gone only
    /// after all of them.
    PidNamespace {
        /// The namespace's init.
        init: ProcessId,
    },
    /// The tree lives in a cgroup (v2) of its own, which can be killed as a whole.
    Cgroup {
        /// The cgroup's directory.
        path: String,
        /// The process that started the agent and reaps its tree.
        keeper: ProcessId,
    },
    /// The shim adopts every orphan of the tree and kills until no child is left. Without the shim nobody can.
    Subreaper {
        /// The process that started the agent and reaps its tree.
        keeper: ProcessId,
    },
}

/// What a shim writes into the latch before it starts the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchLatch {
    /// The kernel's boot id: pids of another boot mean nothing.
    pub boot_id: String,
    /// The inode of the PID namespace in which the pids below hold.
    pub pid_ns: u64,
    /// The shim.
    pub shim: ProcessId,
    /// How to kill the tree.
    pub fence: Fence,
}

/// The content of the latch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "latch", rename_all = "snake_case")]
pub enum Latch {
    /// A shim starts, or has started, the agent.
    Launch(LaunchLatch),
    /// A cancel came first: no agent will ever be started for this run.
    Cancelled,
}

/// What the latch file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LatchState {
    /// Nobody has taken it.
    Free,
    /// Taken, with this content.
    Taken(Latch),
    /// Taken by somebody who did not live to write who it was. No agent was started: the content comes first.
    Torn,
}

impl LatchState {
    /// Reads the latch file's bytes; `None` where there is no file.
    pub fn parse(bytes: Option<&[u8]>) -> LatchState {
        match bytes {
            None => LatchState::Free,
            Some(bytes) => serde_json::from_slice(bytes).map_or(LatchState::Torn, LatchState::Taken),
        }
    }
}
