//! From the agent's start to its end: its output into files, its tree to its grave.

mod run;
mod sink;
mod source;

pub(crate) use run::{Scene, run};
pub(crate) use source::pipe;
