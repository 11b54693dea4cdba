//! What outlives the delivery log, one file for each thing that is done with it.

mod add;
mod append;
mod bodies;
mod condemn;
mod delete;
mod fold;
mod head;
mod leases;
mod pins;
mod read;
mod run;
mod session;
mod settle;

pub(super) use add::add_once;
pub(crate) use append::append_records;
pub(super) use bodies::pointers_of;
pub(crate) use bodies::points_elsewhere;
pub(crate) use condemn::{condemn, pointers};
pub(crate) use delete::{begin_delete, delete_rows, end_delete};
pub(crate) use head::{Found, list_sessions, look, session};
pub(super) use leases::release_all_leases;
pub(crate) use leases::{acquire_lease, release_lease, renew_lease};
pub(crate) use pins::{pin, pins, unpin};
pub(super) use read::pointer;
pub(crate) use read::read_records;
pub(super) use run::{OfRun, add_of_run};
pub(super) use session::Session;
pub(crate) use settle::settle_session;
pub(super) use settle::{input, settle};
