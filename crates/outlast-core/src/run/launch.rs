//! What is recorded at accept, so that any host can launch the run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::canonical;
use crate::shim::{FenceChoice, OutputLimits};
use crate::{Tenant, ThreadId};

/// Everything that a launch needs besides the values of secret variables, which are never stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LaunchSpec {
    /// The agent's name in the configuration, as shown to people.
    pub agent: String,
    /// The kind of agent, which knows how to launch it and how to read what it prints.
    pub kind: String,
    /// The program and its first arguments. Empty: the kind's default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// The model to use; none: the agent's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The user's message, which is the agent's standard input. None: there is no message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Whether the prompt is the agent's standard input (otherwise that is empty).
    #[serde(default = "yes")]
    pub prompt_on_stdin: bool,
    /// Variables with values that are no secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Names of variables whose values are taken from the environment of whoever launches, and without which it must
    /// not be launched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needed_env: Vec<String>,
    /// The working directory, relative to the workspace unless absolute. None: the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// A directory that the user lent. None: the sandbox has a workspace of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Workspace>,
    /// Where and how it runs.
    pub sandbox: SandboxSpec,
}

impl LaunchSpec {
    /// A command as the agent, in this sandbox, with the defaults of everything else.
    pub fn command(argv: Vec<String>, sandbox: SandboxSpec) -> Self {
        LaunchSpec {
            agent: "command".to_owned(),
            kind: "command".to_owned(),
            argv,
            model: None,
            prompt: None,
            prompt_on_stdin: true,
            env: BTreeMap::new(),
            needed_env: Vec::new(),
            cwd: None,
            workspace: None,
            sandbox,
        }
    }
}

fn yes() -> bool {
    true
}

/// A directory that the user lent. Nothing ever deletes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Workspace {
    /// Its real path.
    pub path: String,
    /// Whether runs of other threads may use it at the same time.
    #[serde(default)]
    pub shared: bool,
}

/// The sandbox's definition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxSpec {
    /// The provider's name.
    pub provider: String,
    /// Which fence holds the agent's tree.
    #[serde(default)]
    pub fence: FenceChoice,
    /// Bounds of what the agent prints.
    #[serde(default)]
    pub limits: OutputLimits,
    /// How long it lives.
    #[serde(default, skip_serializing_if = "Lifecycle::is_default")]
    pub lifecycle: Lifecycle,
}

/// How long a sandbox lives after a run of it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lifecycle {
    /// Whether the thread's next run goes on in it.
    pub reuse: Reuse,
    /// How long it waits for that run, in milliseconds; none: until somebody removes it. Without reuse it does not wait.
    pub keep_alive: Option<u64>,
}

/// Who uses a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reuse {
    /// The runs of one thread, one after the other.
    Thread,
    /// One run.
    None,
}

impl Lifecycle {
    /// How long a thread's sandbox waits for its next run unless something else is wished, in milliseconds.
    pub const KEEP_ALIVE: u64 = 30 * 60 * 1000;

    fn is_default(&self) -> bool {
        *self == Lifecycle::default()
    }
}

impl Default for Lifecycle {
    fn default() -> Self {
        Lifecycle { reuse: Reuse::Thread, keep_alive: Some(Lifecycle::KEEP_ALIVE) }
    }
}

impl SandboxSpec {
    /// How long the sandbox is kept once its last run has ended, in milliseconds; none: until somebody removes it.
    pub fn keep_alive(&self) -> Option<u64> {
        match self.lifecycle.reuse {
            Reuse::Thread => self.lifecycle.keep_alive,
            Reuse::None => Some(0),
        }
    }
}

/// The key under which a thread's sandbox is found again: the hex SHA-256 of the canonical JSON of everything that
/// makes two sandboxes different; how long it lives does not.
pub fn sandbox_key(tenant: &Tenant, thread: &ThreadId, spec: &LaunchSpec) -> String {
    canonical::digest(&json!({
        "tenant": tenant,
        "thread": thread,
        "sandbox": SandboxSpec { lifecycle: Lifecycle::default(), ..spec.sandbox.clone() },
        "workspace": spec.workspace.as_ref().map(|w| &w.path),
    }))
}

/// What makes two requests under one run id the same request. The thread is compared apart, since a caller may leave
/// it to Outlast; so are names of variables, which depend on the caller's environment.
pub fn request_digest(spec: &LaunchSpec) -> String {
    canonical::digest(&json!({
        "agent": spec.agent,
        "kind": spec.kind,
        "argv": spec.argv,
        "model": spec.model,
        "prompt": spec.prompt,
        "cwd": spec.cwd,
        "workspace": spec.workspace.as_ref().map(|w| &w.path),
    }))
}
