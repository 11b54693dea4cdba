//! What is done again and again, without anybody asking for it.

mod config;
mod job;
mod run;
mod sessions;
mod status;
mod swept;

pub use config::{JobsConfig, Scheduled};
pub(crate) use run::{run_for_ever, withdraw};
pub(crate) use status::Jobs;
pub(crate) use swept::Outcomes;
