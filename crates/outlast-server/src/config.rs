//! How a server behaves.

use std::time::Duration;

use crate::guard::Token;
use crate::jobs::JobsConfig;

/// Everything that may be set.
#[derive(Debug, Clone, Default)]
pub struct ServerConfig {
    /// Who may ask.
    pub access: Access,
    /// How much it takes on.
    pub limits: Limits,
    /// How long things last.
    pub times: Times,
    /// What is done again and again.
    pub jobs: JobsConfig,
}

/// Who may ask.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// What every request but `/health` and `/ready` must bear. None: whoever reaches the address may ask, which is
    /// meant for loopback only.
    pub token: Option<Token>,
    /// Host names, besides those of loopback, by which a server without a token may be addressed. Any other is refused,
    /// so that a page of the web cannot reach it by having its own name resolve to loopback.
    pub hosts: Vec<String>,
    /// Origins whose pages may ask from a browser. Empty: no CORS headers are sent.
    pub origins: Vec<String>,
}

/// How much a server takes on.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The largest request body, in bytes.
    pub body: usize,
    /// How many runs this process drives at once before it refuses to start another.
    pub runs: usize,
    /// How many streams it serves at once.
    pub viewers: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { body: 16 << 20, runs: 256, viewers: 10_000 }
    }
}

/// How long things last.
#[derive(Debug, Clone)]
pub struct Times {
    /// The longest silence on a stream. Proxies cut what is silent for a minute, some sooner; clients are told 15 s.
    pub heartbeat: Duration,
    /// How long the last viewer of a run with `on_disconnect = "cancel"` may be away before the run is cancelled: a page
    /// that is reloaded or a network that changes is back within seconds.
    pub reconnect_grace: Duration,
    /// How often runs without a driver are looked for.
    pub adopt: Duration,
    /// How often a stream that tells a run's state looks at it.
    pub status: Duration,
    /// How long a request may take to arrive.
    pub request: Duration,
    /// How long answers may take that were begun before the server was told to end.
    pub drain: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Times {
            heartbeat: Duration::from_secs(10),
            reconnect_grace: Duration::from_secs(15),
            adopt: Duration::from_millis(500),
            status: Duration::from_secs(1),
            request: Duration::from_secs(30),
            drain: Duration::from_secs(1),
        }
    }
}
