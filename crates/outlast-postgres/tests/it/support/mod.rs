//! What these tests share.

mod cluster;
mod hosts;
mod load;
mod old;
mod proxy;
mod schema;
mod stage;

pub use cluster::Cluster;
pub use hosts::{config, eventually, host, host_with, retried, settled, within};
pub use load::{Load, ending, numbered};
pub use old::OldHost;
pub use schema::{RowLock, Schema, connect, server};
pub use stage::Stage;
