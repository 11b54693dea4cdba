//! The tables.

mod migrate;
mod steps;

pub(crate) use migrate::prepare;
