//! The keeper: the process inside the fence that starts the agent and reaps its tree.
//!
//! It is the init of the PID namespace, or, in a weaker fence, an ordinary process that adopts the tree's orphans. It
//! starts nothing before the shim says so, and it dies with the shim. It is never the agent's own code, so the tree can
//! be killed without it: then the agent's real exit status is still known, and a second attempt of the launch runs in
//! the same fence, which the latch has named.

mod channel;
mod exec;
mod reap;
mod setup;

pub(crate) use channel::{Channel, Command, Report};
pub(crate) use exec::ExecPlan;
pub(crate) use setup::{Enclosure, Orders, occupy_standard_streams, spawn};
