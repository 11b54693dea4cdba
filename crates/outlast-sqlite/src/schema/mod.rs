//! The tables, and how those of older versions become those of this one.

mod migrate;
mod sessions;
mod steps;

pub(crate) use migrate::prepare;
pub(crate) use steps::CURRENT;
