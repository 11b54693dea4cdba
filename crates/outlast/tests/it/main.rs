//! The promises, end to end: real processes, real signals, the real binary.

mod frozen;
mod killed;
mod support;
