//! What lasts of a thread, with real files and troubled storage.

#![allow(clippy::unwrap_used, reason = "a test fails where something is missing")]
#![allow(clippy::disallowed_methods, reason = "these tests are about real files, on the real clock")]

mod fuzz;
mod ledgers;
mod workspace;
