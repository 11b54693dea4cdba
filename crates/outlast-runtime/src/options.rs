//! The runtime's times and sizes.

use std::time::Duration;

use crate::WorkspaceOptions;

/// Times and sizes, with defaults that suit a service.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long a lease runs unless renewed. A host that dies without a word is succeeded after this time at the
    /// latest; one whose death can be proven, at once.
    pub lease: Duration,
    /// How long a viewer counts as present unless renewed.
    pub presence: Duration,
    /// How often a driver looks whether its run is to stop, where nothing tells it. Stop takes effect on any host
    /// within two seconds.
    pub cancel_poll: Duration,
    /// How often a reader looks again by itself, where no hint comes.
    pub read_poll: Duration,
    /// How long a store that is full, slow or away is waited for before a host gives up. The agent never notices.
    pub store_patience: Duration,
    /// How long an agent's tree has to end by itself when it is stopped.
    pub kill_grace: Duration,
    /// How many bytes of a journal are taken at once.
    pub read_bytes: usize,
    /// When and how workspaces are snapshotted.
    pub workspace: WorkspaceOptions,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            lease: Duration::from_secs(10),
            presence: Duration::from_secs(15),
            cancel_poll: Duration::from_millis(500),
            read_poll: Duration::from_secs(1),
            store_patience: Duration::from_secs(600),
            kill_grace: Duration::from_secs(5),
            read_bytes: 128 * 1024,
            workspace: WorkspaceOptions::default(),
        }
    }
}
