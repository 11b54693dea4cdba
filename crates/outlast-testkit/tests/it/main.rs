//! Tests of the runtime that need a world around it.

mod reap;
mod sessions;
mod sim;
