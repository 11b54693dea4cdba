//! Sessions and their ledgers.

mod append;
mod bodies;
mod deleting;
mod entries;
mod fold;
mod leases;
mod list;
mod pins;
#[cfg(test)]
mod plans;
mod read;
mod session;
mod settle;
mod transcript;

pub(crate) use append::append_records;
pub(super) use bodies::{check_bodies, check_pointers};
pub(crate) use bodies::{condemn, pointers};
pub(crate) use deleting::{begin_delete, delete_rows, end_delete};
pub(crate) use leases::{acquire_lease, release_lease, release_leases, renew_lease};
pub(crate) use list::list_sessions;
pub(crate) use pins::{pin, pins, unpin};
pub(crate) use read::read_records;
pub(super) use session::Session;
pub(crate) use session::head;
pub(super) use settle::settle;
pub(crate) use settle::{settle_session, settled};
pub(crate) use transcript::{run_messages, thread_messages};
