//! The embedded store: what every store promises, and what only files, locks and processes can break.

mod conformance;
mod support;
