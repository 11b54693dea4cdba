//! What other processes do: their commits, as the file system tells of them, and their standing still.

mod dog;
mod wal;

pub(crate) use dog::Watchdog;
pub(crate) use wal::Watch;
