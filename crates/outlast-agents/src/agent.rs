//! What a kind of agent must know.

use outlast_core::run::{LaunchSpec, RunError, Usage};
use outlast_core::transcript::Message;
use serde_json::Value;

use crate::Emitter;

/// One kind of agent.
///
/// Implementations are stateless: everything that a run needs is in the request or in its [`Translator`].
pub trait Agent: Send + Sync + std::fmt::Debug {
    /// The kind's name, as in `kind = "…"` of the configuration.
    fn kind(&self) -> &'static str;

    /// The version of the translator's state ([`Translator::state`]). Raised whenever an older state can no longer be
    /// read, or when the same journal yields other events than before; a successor then retranslates from the start.
    fn state_version(&self) -> u32;

    /// Variables that this agent takes from the environment of whoever starts the run, where they are set (keys and
    /// endpoints). A run that was started with one of them is not launched by a host that lacks it.
    fn usual_env(&self) -> &'static [&'static str];

    /// What to start for this run. Pure.
    fn plan(&self, request: &LaunchRequest<'_>) -> Result<LaunchPlan, PlanError>;

    /// A translator at the start of a journal.
    fn translator(&self, context: &RunContext) -> Box<dyn Translator>;

    /// A translator with a state that [`Translator::state`] has given, of this [`Agent::state_version`].
    fn resume(&self, context: &RunContext, state: &Value) -> Result<Box<dyn Translator>, StateUnreadable>;
}

/// Turns what an agent prints into events.
///
/// A translator is deterministic and depends on nothing but the lines that it was given: the same lines yield the same
/// events in every process, on every host. [`crate::testing::check_translator`] checks that.
pub trait Translator: Send + Sync {
    /// Takes the next line.
    fn line(&mut self, line: PrintedLine<'_>, out: &mut Emitter<'_>);

    /// The agent has ended: closes what is open (messages, tool calls without a result) and judges. Does not write
    /// `RUN_FINISHED` or `RUN_ERROR`; the runtime does.
    fn finish(&mut self, exit: &AgentExit, out: &mut Emitter<'_>) -> Ended;

    /// Everything that [`Agent::resume`] needs to go on after the lines taken so far. Small: it is stored with every
    /// append.
    fn state(&self) -> Value;

    /// The session in the agent's own words, once it is known.
    fn session(&self) -> Option<&str>;
}

/// The identity of the run that is translated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunContext {
    /// The run. Ids of messages and tool calls begin with it.
    pub run_id: String,
    /// Its thread.
    pub thread_id: String,
    /// The model that was asked for.
    pub model: Option<String>,
}

/// A line that the agent printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrintedLine<'a> {
    /// The line's bytes without its line break.
    Bytes {
        /// The bytes, which need not be UTF-8.
        bytes: &'a [u8],
        /// Whether the agent printed a line break after them; not so for a last line that it left open.
        terminated: bool,
    },
    /// A line that was too long to keep.
    Oversized {
        /// Its size in bytes.
        bytes: u64,
        /// Its hex SHA-256.
        sha256: &'a str,
    },
    /// The agent had lost the session that it was to resume, and was started afresh within the same launch. What it
    /// prints from here on is a new session's.
    Restarted,
}

/// How the agent ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentExit {
    /// Its exit status; none where it is not known.
    pub status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The end of what it wrote to its standard error, at most 4 KiB.
    pub stderr_tail: String,
}

/// What the translator makes of the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ended {
    /// The failure that the agent reported, or that its exit status stands for. None: it did its work.
    pub failure: Option<RunError>,
    /// What it used.
    pub usage: Vec<Usage>,
    /// The final answer, if the agent told one apart from its messages.
    pub result: Option<Value>,
}

/// What is known when a run is to be launched.
#[derive(Debug, Clone, Copy)]
pub struct LaunchRequest<'a> {
    /// The deployment's id. What an agent keeps under a name of the run's has this in the name too, so that two data
    /// directories that share a home never collide.
    pub deployment: &'a str,
    /// The run.
    pub run_id: &'a str,
    /// Its thread.
    pub thread_id: &'a str,
    /// What was recorded at accept.
    pub spec: &'a LaunchSpec,
    /// The conversation before this turn.
    pub history: &'a [Message],
    /// The session that an agent of this kind had on the thread.
    pub session: Option<&'a str>,
    /// Whether the agent will run as root.
    pub as_root: bool,
}

/// What to start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaunchPlan {
    /// The program and its arguments. Never the prompt, never a secret.
    pub argv: Vec<String>,
    /// The agent's standard input.
    pub prompt: Option<String>,
    /// Variables that this kind sets by itself. The definition's win over them.
    pub env: Vec<(String, String)>,
    /// What to start where the agent has lost the session that `argv` resumes.
    pub fallback: Option<FallbackPlan>,
}

/// The second attempt of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FallbackPlan {
    /// Texts on the standard error of which one says that the session is lost.
    pub markers: Vec<String>,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Its standard input: the conversation so far and the new message.
    pub prompt: Option<String>,
}

/// Why nothing can be started. The message says what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(pub String);

/// The state is not one that this code can read; the journal is translated again from its start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the translator's state cannot be read: {0}")]
pub struct StateUnreadable(pub String);
