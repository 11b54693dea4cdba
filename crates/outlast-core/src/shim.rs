//! What a host says to a shim, and what the shim answers.

use serde::{Deserialize, Serialize};

use crate::ExitSecret;

/// The one line of JSON on the shim's standard input. End of input before the line break: the shim leaves and nothing
/// has happened.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ShimRequest {
    /// The run's exit secret.
    pub secret: ExitSecret,
    /// The agent.
    pub command: ShimCommand,
    /// What to start instead, once, where the agent has lost the session that it was to resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Fallback>,
    /// The agent's whole environment.
    pub env: Vec<(String, String)>,
    /// The agent's working directory.
    pub cwd: String,
    /// Bounds of the agent's output.
    pub limits: OutputLimits,
    /// Which fence to use.
    #[serde(default)]
    pub fence: FenceChoice,
    /// Directories that the agent finds empty, where the fence has a mount namespace: a guard against accidents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hide: Vec<String>,
}

/// A program and its standard input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimCommand {
    /// The program (looked up in the `PATH` of the agent's environment unless it holds a slash) and its arguments.
    pub argv: Vec<String>,
    /// The file that is its standard input; none: an empty one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
}

/// A second attempt within the same launch: the latch is held and the first process is gone, so there is still only
/// one agent at a time. It is made only where the first one ended with a failure, printed at most [`Fallback::MAX_PRINTED`]
/// bytes, and said one of the markers on its standard error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fallback {
    /// Texts of which one must occur in the standard error.
    pub markers: Vec<String>,
    /// What to start. The journal gets [`crate::journal::sentinel::restart_note`] before its output, as a line of its own.
    pub command: ShimCommand,
}

impl Fallback {
    /// The most that the first attempt may have printed, in bytes: an agent may report on its standard output that it
    /// cannot resume, but one that said more has worked, and work is not done twice.
    pub const MAX_PRINTED: u64 = 16 * 1024;
}

/// Bounds of what an agent may print, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputLimits {
    /// Of the journal.
    pub stdout: u64,
    /// Of the standard error's file.
    pub stderr: u64,
}

impl Default for OutputLimits {
    /// 16 GiB of standard output, 256 MiB of standard error.
    fn default() -> Self {
        OutputLimits { stdout: 16 << 30, stderr: 256 << 20 }
    }
}

/// Which fence a shim uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FenceChoice {
    /// The strongest that the machine grants, found by trying.
    #[default]
    Auto,
    /// A PID namespace, or no launch.
    PidNamespace,
    /// A cgroup (v2), or no launch.
    Cgroup,
    /// The shim as subreaper.
    Subreaper,
}

/// The one line of JSON on the shim's standard output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ShimReport {
    /// This shim has the latch; the agent is being started.
    Launched,
    /// The latch was taken before: by another shim or by a cancel. This shim has done nothing.
    AlreadyLatched,
    /// The sandbox's runs directory does not exist. This shim has done nothing.
    SandboxGone {
        /// For people.
        message: String,
    },
    /// Nothing was started and the latch was not taken; another attempt may succeed.
    Refused {
        /// For people.
        message: String,
    },
}
