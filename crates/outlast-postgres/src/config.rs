//! What a store needs to know.

use outlast_core::OwnerId;
use outlast_store::Ports;

/// How to open a [`crate::PostgresStore`].
#[derive(Clone)]
#[non_exhaustive]
pub struct PostgresConfig {
    /// Where: `postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=require`, or `key=value` pairs. Tables are made in the
    /// first schema of the connection's search path.
    pub url: String,
    /// This process, under an id that no process has had before.
    pub owner: OwnerId,
    /// Time and randomness. The database's clock decides about leases; this one only sleeps.
    pub ports: Ports,
    /// Connections for reads and writes at most, of which reads take half; besides one for renewals, and two for
    /// notifications. At least 2. Default: 16.
    pub connections: usize,
    /// Whether notifications are sent and listened to. Without them whoever waits looks by itself, within two seconds.
    /// Default: true.
    pub notifications: bool,
}

impl PostgresConfig {
    /// The usual configuration.
    pub fn new(url: impl Into<String>, owner: OwnerId, ports: Ports) -> Self {
        PostgresConfig { url: url.into(), owner, ports, connections: 16, notifications: true }
    }
}

impl std::fmt::Debug for PostgresConfig {
    /// Without the URL, which may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresConfig").field("owner", &self.owner).finish_non_exhaustive()
    }
}
