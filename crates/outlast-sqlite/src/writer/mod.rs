//! The one thread of this process that writes.

mod batch;
mod job;
mod queue;
mod thread;

pub(crate) use job::{Job, Write};
pub(crate) use queue::{Queue, Urgency};
pub(crate) use thread::{Writer, spawn};
