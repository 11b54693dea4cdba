//! The journal: what lies in a sandbox beside an agent, and how it is read.

pub mod exit;
pub mod files;
pub mod latch;
pub mod lines;
pub mod sentinel;
