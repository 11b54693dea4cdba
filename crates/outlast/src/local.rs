//! What one machine has: a data directory with local sandboxes, and the durable state in an SQLite file there or in a
//! PostgreSQL that many hosts share.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use outlast_core::{OwnerId, Tenant};
use outlast_runtime::{Environment, Host, HostConfig, Notices, Options};
use outlast_sandbox::{LocalConfig, LocalProvider, ProviderError, ShimProgram};
use outlast_session::objects::{Objects, ObjectsError};
use outlast_sqlite::{SqliteConfig, SqliteStore};
use outlast_store::{Ports, Store, StoreError};

/// The first argument with which this program is started as a shim.
pub const SHIM_COMMAND: &str = "__shim";

/// Runs the shim if this process was started as one, and returns its exit status. To be called first in `main`, before
/// any thread or runtime exists.
pub fn run_shim_if_asked() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    (args.next()? == SHIM_COMMAND).then(|| outlast_shim::main(args))
}

/// Where the durable state is.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreChoice {
    /// In an SQLite file in the data directory, for all processes of this machine.
    Embedded,
    /// In PostgreSQL, for many hosts.
    #[cfg(feature = "postgres")]
    Postgres {
        /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE`.
        url: String,
        /// Whether the hosts tell each other of changes. Without it, each looks by itself, within two seconds.
        notifications: bool,
    },
}

impl std::fmt::Debug for StoreChoice {
    /// Without the URL, which may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            StoreChoice::Embedded => "Embedded",
            #[cfg(feature = "postgres")]
            StoreChoice::Postgres { .. } => "Postgres",
        })
    }
}

/// How a data directory is opened.
#[derive(Debug)]
pub struct LocalOptions {
    /// The data directory; made if it is missing.
    pub data_dir: PathBuf,
    /// Where the durable state is.
    pub store: StoreChoice,
    /// Where large bodies and snapshots of workspaces are: a directory, or a bucket by URL (`s3://…`, `gs://…`, `az://…`);
    /// none: `objects` in the data directory. Hosts that share a store must share this, too.
    pub objects: Option<String>,
    /// What the environment says of the bucket (`AWS_…`, `GOOGLE_…`, `AZURE_…`).
    pub objects_environment: Vec<(String, String)>,
    /// Whose runs are handled.
    pub tenant: Tenant,
    /// Times and sizes.
    pub options: Options,
    /// Variables for agents.
    pub environment: Environment,
    /// Who is told of what goes on.
    pub notices: Notices,
    /// Time and randomness.
    pub ports: Ports,
    /// The program that is the shim, with its first arguments; none: this very program with [`SHIM_COMMAND`].
    pub shim: Option<(PathBuf, Vec<String>)>,
}

impl LocalOptions {
    /// The defaults, for this data directory.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        LocalOptions {
            data_dir: data_dir.into(),
            store: StoreChoice::Embedded,
            objects: None,
            objects_environment: bucket_environment(),
            tenant: Tenant::default(),
            options: Options::default(),
            environment: Environment::of_process(),
            notices: Notices::to_log(),
            ports: Ports::system(),
            shim: None,
        }
    }
}

/// Why a data directory could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The sandboxes.
    #[error("the sandboxes' directory: {0}")]
    Provider(#[from] ProviderError),
    /// Object storage.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
    /// The path of this program, which is to be the shim, is not known.
    #[error("the path of this program cannot be found out: {0}")]
    Program(std::io::Error),
}

/// An opened data directory.
#[derive(Debug)]
pub struct Local {
    host: Host,
    owner: OwnerId,
}

impl Local {
    /// Opens the data directory. Any number of processes may have it open at once.
    pub async fn open(options: LocalOptions) -> Result<Local, OpenError> {
        let owner = options.ports.entropy.owner_id();
        let (program, args) = match options.shim {
            Some((program, args)) => (program, args),
            None => (std::env::current_exe().map_err(OpenError::Program)?, vec![SHIM_COMMAND.to_owned()]),
        };
        let store = open_store(&options.store, &options.data_dir, owner.clone(), &options.ports).await?;
        let provider = LocalProvider::new(LocalConfig {
            root: options.data_dir.join("sandboxes"),
            shim: ShimProgram { program, args: args.into_iter().map(Into::into).collect() },
            ports: options.ports.clone(),
        })?;
        let own = options.data_dir.join("objects");
        let place = options.objects.unwrap_or_else(|| own.to_string_lossy().into_owned());
        let objects = Objects::open(&place, options.objects_environment)?;
        let mut times = options.options;
        if times.workspace.cache.is_none() {
            times.workspace.cache = Some(options.data_dir.join("cache").join("workspaces"));
        }
        let host = Host::new(HostConfig {
            owner: owner.clone(),
            store,
            objects,
            provider: Arc::new(provider),
            agents: outlast_agents::agent,
            ports: options.ports,
            environment: options.environment,
            tenant: options.tenant,
            options: times,
            notices: options.notices,
        });
        Ok(Local { host, owner })
    }

    /// The host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The identity of this process among those that share the data directory.
    pub fn owner(&self) -> &OwnerId {
        &self.owner
    }

    /// Waits for what is in flight and gives back every claim. Agents work on.
    pub async fn close(self) {
        let store: Arc<dyn Store> = Arc::clone(self.host.store());
        store.close().await;
    }
}

/// What this process's environment says of buckets.
pub(crate) fn bucket_environment() -> Vec<(String, String)> {
    let meant = |name: &str| ["AWS_", "GOOGLE_", "AZURE_"].iter().any(|prefix| name.starts_with(prefix));
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| meant(name))
        .collect()
}

/// Opens the durable state alone.
pub(crate) async fn open_store(
    choice: &StoreChoice,
    data_dir: &Path,
    owner: OwnerId,
    ports: &Ports,
) -> Result<Arc<dyn Store>, StoreError> {
    Ok(match choice {
        StoreChoice::Embedded => {
            Arc::new(SqliteStore::open(SqliteConfig::new(data_dir, owner, ports.clone()))?)
        }
        #[cfg(feature = "postgres")]
        StoreChoice::Postgres { url, notifications } => {
            let mut config = outlast_postgres::PostgresConfig::new(url.as_str(), owner, ports.clone());
            config.notifications = *notifications;
            Arc::new(outlast_postgres::PostgresStore::open(config).await?)
        }
    })
}
