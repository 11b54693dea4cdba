//! The commands.

pub mod attach;
pub mod cancel;
pub mod doctor;
mod follow;
pub mod logs;
pub mod ps;
pub mod run;
pub mod serve;
pub mod show;
pub mod verify;
