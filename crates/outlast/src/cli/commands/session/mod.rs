//! `outlast session`.

mod command;
mod gc;
mod remove;
mod show;
mod transfer;

use command::find_any;
pub use command::{find, records, session};
