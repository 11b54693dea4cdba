//! The statements, one file for each thing that a store does.

mod accept;
mod append;
mod cancel;
mod claim;
mod context;
mod finish;
mod head;
mod hosts;
mod instances;
mod ledger;
mod list;
mod messages;
mod page;
mod presence;
mod reclaim;
mod record;
mod renew;
mod retain;
mod stats;

pub(crate) use accept::accept;
pub(crate) use append::{append, append_at_once, launched, refuse_terminal};
pub(crate) use cancel::request_cancel;
pub(crate) use claim::{claim, release, release_all};
pub(crate) use context::{Next, Tx};
pub(crate) use finish::finish;
pub(crate) use hosts::{announce, hosts};
pub(crate) use instances::{create_instance, find_instance, instance, instance_created, use_instance};
pub(crate) use ledger::{
    Found, acquire_lease, append_records, begin_delete, condemn, delete_rows, end_delete, list_sessions,
    look, pin, pins, pointers, points_elsewhere, read_records, release_lease, renew_lease, session,
    settle_session, unpin,
};
pub(crate) use list::{find_active_run, list_runs};
pub(crate) use messages::{last_agent_session, run_messages, thread_messages};
pub(crate) use page::page;
pub(crate) use presence::{note_stall, presence};
pub(crate) use reclaim::{begin_reclaim, end_reclaim, list_instances};
pub(crate) use record::run;
pub(crate) use renew::renew;
pub(crate) use retain::{count_expired, expire_events};
pub(crate) use stats::{now, stats};
