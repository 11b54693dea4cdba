//! The embedded store: what every store promises, and what only files, locks and processes can break.

mod abandoned;
mod conformance;
mod full;
mod locked;
mod processes;
mod signals;
mod support;
mod unusable;
mod versions;
mod wal;
