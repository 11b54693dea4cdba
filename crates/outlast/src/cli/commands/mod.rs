//! The commands.

pub mod attach;
pub mod cancel;
pub mod doctor;
mod follow;
pub mod gc;
pub mod logs;
pub mod prune;
pub mod ps;
pub mod reap;
pub mod reclaim;
pub mod run;
pub mod sandbox;
pub mod serve;
pub mod session;
pub mod show;
pub mod verify;
pub mod workspace;
