//! What the store does, as statements within a transaction. Facts are gathered here, `outlast_core::decide` is asked,
//! and only then is anything written: a refusal leaves the transaction as it was.

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
mod retain;
mod stats;

pub(crate) use accept::accept;
pub(crate) use append::{append, launched};
pub(crate) use cancel::request_cancel;
pub(crate) use claim::{claim, release, release_all, renew};
pub(crate) use context::{Tx, View};
pub(crate) use finish::finish;
pub(crate) use hosts::{announce, hosts};
pub(crate) use instances::{create_instance, find_instance, instance, instance_created, use_instance};
pub(crate) use ledger::{
    acquire_lease, append_records, begin_delete, condemn, delete_rows, end_delete, head, list_sessions, pin,
    pins, pointers, read_records, release_lease, renew_lease, run_messages, settle_session, settled,
    thread_messages, unpin,
};
pub(crate) use list::{find_active_run, list_runs};
pub(crate) use messages::last_agent_session;
pub(crate) use page::page;
pub(crate) use presence::{note_stall, presence};
pub(crate) use reclaim::{begin_reclaim, end_reclaim, list_instances};
pub(crate) use record::run;
pub(crate) use retain::{count_expired, expire_events};
pub(crate) use stats::stats;
