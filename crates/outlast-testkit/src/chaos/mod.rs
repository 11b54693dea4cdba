//! Several real servers on one PostgreSQL, clients that lose their connections, and an adversary.
//!
//! Whatever can be asked of the product from outside is asked from outside: servers are processes of the `outlast` binary,
//! viewers are HTTP clients behind a proxy that cuts, people press Stop over HTTP, and the adversary has signals and
//! `pg_terminate_backend`. A seed draws what is done; the machine decides when it takes effect, so the same seed is the
//! same trouble, not the same history.

#![allow(clippy::disallowed_methods, reason = "real processes live in real time")]

mod adversary;
mod agents;
mod check;
mod client;
mod database;
mod hosts;
mod plan;
mod proxy;
mod round;
mod viewer;

pub use plan::{Plan, Troubles};
pub use round::{Report, round};
