//! Outlast over HTTP.
//!
//! A [`Server`] serves a [`outlast_runtime::Host`]: it starts runs, streams their logs to any number of viewers, keeps
//! them driven while it lives and hands them over when it ends. A closed connection never stops a run. What the server
//! knows beyond the store is only who watches and what this process drives, and both are found again after a `kill -9`.

mod app;
mod catalog;
mod chat;
mod config;
mod error;
mod extract;
mod guard;
mod jobs;
mod keep;
mod listen;
mod names;
mod router;
mod server;
mod stream;
mod until;
mod v1;

pub use catalog::{Catalog, Plan};
pub use config::{Access, Limits, ServerConfig, Times};
pub use guard::Token;
pub use jobs::{JobsConfig, Scheduled};
pub use router::openapi;
pub use server::Server;
