//! How each agent is launched, and how its output becomes events.
//!
//! An [`Agent`] knows one kind of agent: its command line ([`Agent::plan`]) and its output ([`Translator`]).
//! [`Translation`] feeds a journal's bytes to a translator and yields events with their origins.

mod agent;
mod emitter;
mod translation;

pub use agent::{
    Agent, AgentExit, Ended, FallbackPlan, LaunchPlan, LaunchRequest, PlanError, PrintedLine, RunContext,
    StateUnreadable, Translator,
};
pub use emitter::Emitter;
pub use translation::{JournalEnd, Progress, Translation};
