//! `/v1`: for operators and backends.

mod cancel;
mod events;
mod health;
mod metrics;
mod reap;
mod run;
mod runs;
mod schema;
mod thread;
mod thread_events;

pub(crate) use cancel::{__path_cancel, cancel, stop};
pub(crate) use events::{__path_events, events};
pub(crate) use health::{__path_health, __path_ready, health, ready};
pub(crate) use metrics::{__path_metrics, metrics};
pub(crate) use reap::{__path_reap, __path_reap_by_get, reap, reap_by_get};
pub(crate) use run::{__path_messages, __path_run, messages, run};
pub(crate) use runs::{__path_runs, runs};
pub(crate) use schema::{ErrorBody, RunAgentInput};
pub(crate) use thread::{__path_thread, thread};
pub(crate) use thread_events::{__path_thread_events, thread_events};
