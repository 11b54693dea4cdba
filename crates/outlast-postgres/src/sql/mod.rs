//! The statements, one file for each thing that a store does.

mod accept;
mod append;
mod cancel;
mod claim;
mod context;
mod finish;
mod head;
mod instances;
mod list;
mod messages;
mod page;
mod presence;
mod record;
mod renew;

pub(crate) use accept::accept;
pub(crate) use append::{append, append_at_once, launched, refuse_terminal};
pub(crate) use cancel::request_cancel;
pub(crate) use claim::{claim, release, release_all};
pub(crate) use context::{Next, Tx};
pub(crate) use finish::finish;
pub(crate) use instances::{create_instance, find_instance, instance, set_instance_state, use_instance};
pub(crate) use list::{find_active_run, list_runs};
pub(crate) use messages::{last_agent_session, run_messages, thread_messages};
pub(crate) use page::page;
pub(crate) use presence::presence;
pub(crate) use record::run;
pub(crate) use renew::renew;
