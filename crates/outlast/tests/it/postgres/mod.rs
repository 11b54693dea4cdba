//! Several processes, and hosts that do not reach each other's sandboxes, on one PostgreSQL.

mod away;
mod chaos;
#[path = "../../../../outlast-postgres/tests/it/support/cluster.rs"]
#[allow(dead_code, reason = "shared with the tests of the store, which use more of it")]
mod cluster;
mod hosts;
mod http;
mod place;
mod reaped;
mod stopped;
