//! `outlast session`.

mod command;
mod gc;
mod remove;
mod show;
mod transfer;

pub use command::{find, records, session};
