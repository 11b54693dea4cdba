//! How hard a round is.

use std::path::PathBuf;
use std::time::Duration;

/// How often each trouble is drawn, relative to the others.
#[derive(Debug, Clone, Copy)]
pub struct Troubles {
    /// `kill -9` of a server; it is started again at once or some time later.
    pub kill: usize,
    /// SIGSTOP of a server for longer than a lease, then SIGCONT.
    pub freeze: usize,
    /// SIGTERM of a server, as a deploy does it, and a new one in its place.
    pub restart: usize,
    /// Connections of servers to PostgreSQL are cut.
    pub cut_database: usize,
    /// Somebody presses Stop.
    pub cancel: usize,
}

/// What a round consists of.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The `outlast` binary.
    pub outlast: PathBuf,
    /// PostgreSQL, as a URL without TLS. The round makes a schema of its own there, and drops it when all went well.
    pub database: String,
    /// An existing directory for data, sandboxes and the servers' logs.
    pub dir: PathBuf,
    /// What everything is drawn from.
    pub seed: u64,
    /// Servers at a time.
    pub hosts: usize,
    /// Runs that are started while there is trouble.
    pub runs: usize,
    /// Viewers of each run.
    pub viewers: usize,
    /// How long there is trouble.
    pub trouble: Duration,
    /// How long everything may take to come to its end after that.
    pub calm: Duration,
    /// How long the leases run.
    pub lease: Duration,
    /// The longest time between two troubles.
    pub pause: Duration,
    /// What the adversary does.
    pub troubles: Troubles,
    /// Whether the proxy cuts connections, and viewers leave and come back.
    pub cut_viewers: bool,
}

impl Plan {
    /// Everything at once, for half a minute.
    pub fn new(outlast: PathBuf, database: String, dir: PathBuf, seed: u64) -> Plan {
        Plan {
            outlast,
            database,
            dir,
            seed,
            hosts: 3,
            runs: 24,
            viewers: 2,
            trouble: Duration::from_secs(30),
            calm: Duration::from_secs(120),
            lease: Duration::from_secs(2),
            pause: Duration::from_millis(1200),
            troubles: Troubles { kill: 3, freeze: 2, restart: 2, cut_database: 2, cancel: 3 },
            cut_viewers: true,
        }
    }

    /// A deploy: nothing but one server after the other replaced, under load, behind a proxy that cuts nothing itself.
    pub fn rolling(outlast: PathBuf, database: String, dir: PathBuf, seed: u64) -> Plan {
        Plan {
            troubles: Troubles { kill: 0, freeze: 0, restart: 1, cut_database: 0, cancel: 0 },
            cut_viewers: false,
            trouble: Duration::from_secs(15),
            ..Plan::new(outlast, database, dir, seed)
        }
    }
}
