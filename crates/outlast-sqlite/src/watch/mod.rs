//! Commits of other processes, as the file system tells of them.

mod wal;

pub(crate) use wal::Watch;
