//! The promises, end to end: real processes, real signals, the real binary.

mod cancelled;
mod failures;
mod frozen;
mod killed;
mod output;
mod store;
mod support;
