//! The PostgreSQL store: what every store promises, and what only a server, connections and several hosts can break.
//!
//! Most tests have a schema of their own on the server that `OUTLAST_TEST_POSTGRES` names, else on that of this machine;
//! those that stop or configure a server have one of their own.

#![allow(clippy::disallowed_methods, reason = "these tests are about real servers, on the real clock")]

mod away;
mod clocks;
mod conformance;
mod cut;
mod frozen;
mod lost;
mod migrate;
mod notify;
mod older;
mod readers;
mod refused;
mod renewals;
mod sessions;
mod settings;
mod support;
mod tls;
mod versions;
