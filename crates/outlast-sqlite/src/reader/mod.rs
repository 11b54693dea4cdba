//! The threads that read: short snapshots, so that the write-ahead log can be emptied.

mod pool;

pub(crate) use pool::Readers;
