//! The embedded store: what every store promises, and what only files, locks and processes can break.

#![allow(clippy::unwrap_used, reason = "a test fails where something is missing")]
#![allow(clippy::disallowed_methods, reason = "these tests are about real processes, on the real clock")]

mod abandoned;
mod bodies;
mod conformance;
mod folded;
mod full;
mod locked;
mod migrated;
mod processes;
mod signals;
mod support;
mod unusable;
mod versions;
mod wal;
