//! Which jobs there are, and how often.

use std::time::Duration;

use outlast_runtime::{PruneOptions, ReapOptions, RetainOptions};
use outlast_session::collect::GcOptions;
use outlast_session::upkeep::WorkspaceGcOptions;

/// The jobs of a server. None: somebody else sees to it, by calling `outlast reap`, `/v1/reap`, `outlast gc`.
#[derive(Debug, Clone)]
pub struct JobsConfig {
    /// The sweep over runs that nobody watches.
    pub reap: Option<Scheduled<ReapOptions>>,
    /// Destroying sandboxes that are due, and what is left without a record for as long as the value says.
    pub reclaim: Option<Scheduled<Duration>>,
    /// Deleting journals that are proven to be useless.
    pub prune: Option<Scheduled<PruneOptions>>,
    /// Deleting what has aged out.
    pub retain: Option<Scheduled<RetainOptions>>,
    /// Looking after sessions: collecting bodies, finishing deletions, recording the end of activity.
    pub sessions: Option<Scheduled<GcOptions>>,
    /// Collecting snapshots of workspaces.
    pub workspaces: Option<Scheduled<WorkspaceGcOptions>>,
}

/// Something that is done every so often.
#[derive(Debug, Clone)]
pub struct Scheduled<T> {
    /// How often, give or take a tenth, so that hosts which were started at once do not stay in step.
    pub every: Duration,
    /// How.
    pub options: T,
}

impl Default for JobsConfig {
    fn default() -> Self {
        JobsConfig {
            reap: Some(Scheduled { every: Duration::from_secs(60), options: ReapOptions::default() }),
            reclaim: Some(Scheduled { every: Duration::from_secs(30), options: Duration::from_secs(3600) }),
            prune: Some(Scheduled { every: Duration::from_secs(3600), options: PruneOptions::default() }),
            retain: Some(Scheduled { every: Duration::from_secs(3600), options: RetainOptions::default() }),
            sessions: Some(Scheduled { every: Duration::from_secs(3600), options: GcOptions::default() }),
            workspaces: Some(Scheduled {
                every: Duration::from_secs(3600),
                options: WorkspaceGcOptions::default(),
            }),
        }
    }
}
